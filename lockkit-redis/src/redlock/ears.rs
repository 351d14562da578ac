//! What nodes tell this client unasked: that a holder is asked to let go, or was made to.

use std::sync::{Arc, OnceLock};

use lockkit_core::{AttemptId, HoldId, Notices, Resource};
use rand::RngExt;
use rand::distr::Alphanumeric;

use crate::transport::{Arrival, Ears, Failure};

/// The letters and digits of a client's id.
const ID: usize = 12;

/// The ears of one client, on all nodes.
#[derive(Debug)]
pub(crate) struct Hearing {
    pub(crate) client: String,
    channel: String,
    notices: OnceLock<Notices>,
}

impl Hearing {
    /// Under a fresh id, on a channel that begins so.
    pub(crate) fn new(inbox: &str) -> Arc<Self> {
        let mut rng = rand::rng();
        let client: String = (0..ID)
            .map(|_| char::from(rng.sample(Alphanumeric)))
            .collect();
        Arc::new(Self {
            channel: format!("{inbox}{client}"),
            client,
            notices: OnceLock::new(),
        })
    }

    pub(crate) fn attach(&self, notices: Notices) {
        // Called once; the first sink stays.
        let _ = self.notices.set(notices);
    }

    pub(crate) fn notices(&self) -> Notices {
        self.notices.get().cloned().unwrap_or_default()
    }
}

impl Ears for Hearing {
    fn channels(&self) -> Vec<String> {
        vec![self.channel.clone()]
    }

    /// A letter, an attempt, and the key of a resource. Each node says it; once is enough.
    fn heard(&self, message: &[u8], _: &str) {
        let parse = || {
            let (letter, rest) = message.split_first()?;
            let (attempt, key) = rest.split_at_checked(16)?;
            let resource = Resource::from_key(str::from_utf8(key).ok()?)?;
            Some((
                *letter,
                HoldId::new(resource, AttemptId::from_bytes(attempt)?),
            ))
        };
        match parse() {
            Some((b'a', id)) => self.notices().release_requested(&id),
            Some((b'e', id)) => self.notices().gone(&id),
            _ => {}
        }
    }

    fn missed(&self) {}

    /// A node that is back is given what it lacks by the next renewal, which is due now. Nobody has to
    /// doubt a hold for it: the others have it, or the renewal will tell.
    fn connected(&self, arrival: Arrival) {
        if arrival != Arrival::First {
            self.notices().resumed(false);
        }
    }

    /// Then requests to let go are seen with the next renewal.
    fn deaf(&self, _: &Failure) {}
}
