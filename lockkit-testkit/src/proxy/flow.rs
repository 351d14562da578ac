//! What becomes of bytes.

use std::time::Duration;

/// What becomes of the bytes that travel in one direction of a [`Proxy`](crate::Proxy).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Flow {
    /// They arrive.
    #[default]
    Pass,
    /// They wait until this changes, like on a network that loses every packet: connections stay
    /// open, and nobody is told, not even of their end.
    Stall,
    /// They are lost, and what comes after them arrives once this changes.
    Swallow,
    /// They arrive so much later, in order.
    Delay(Duration),
    /// Push messages of RESP3, the frames that begin with `>`, are lost, among them the
    /// confirmations of `SUBSCRIBE`; everything else arrives. A frame that has begun to pass when
    /// this is set passes as a whole. Means nothing for other protocols.
    SwallowPushes,
}
