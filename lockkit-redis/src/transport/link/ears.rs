//! Who listens on a link.

use std::fmt;

use crate::transport::Failure;

/// How a connection compares with the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// There was none before.
    First,
    /// To the same master: what it knew it still knows.
    Again,
    /// To another one, or to one that was none in between, which may know less.
    Elsewhere,
}

/// Who listens on a link.
pub(crate) trait Ears: fmt::Debug + Send + Sync {
    /// The channels to hear, asked for on each new connection before it is used.
    fn channels(&self) -> Vec<String>;

    /// Whether they are channels of a slot, as in `SSUBSCRIBE`.
    fn are_sharded(&self) -> bool {
        false
    }

    /// A message came, from a server with this [`reign`](Server::reign). Must not block.
    fn heard(&self, message: &[u8], reign: &str);

    /// Messages may have been lost: there was a gap in hearing.
    fn missed(&self);

    /// The link is down.
    fn lost(&self) {}

    /// The link is up.
    fn connected(&self, arrival: Arrival);

    /// The server does not let this client listen.
    fn deaf(&self, failure: &Failure);
}

/// Nobody listens.
#[derive(Debug)]
pub(crate) struct NoEars;

impl Ears for NoEars {
    fn channels(&self) -> Vec<String> {
        Vec::new()
    }
    fn heard(&self, _: &[u8], _: &str) {}
    fn missed(&self) {}
    fn connected(&self, _: Arrival) {}
    fn deaf(&self, _: &Failure) {}
}
