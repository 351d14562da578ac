//! What has passed through a proxy.

use std::sync::atomic::{AtomicU64, Ordering};

/// What has passed through a [`Proxy`](crate::Proxy) so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Traffic {
    /// Connections that clients have made.
    pub connections: u64,
    /// How many of them are still there.
    pub open: u64,
    /// Bytes that have been passed on to the server.
    pub requests: u64,
    /// Bytes that have been passed on to clients.
    pub replies: u64,
}

/// A number that many tasks change.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, more: usize) {
        self.0.fetch_add(more as u64, Ordering::SeqCst);
    }

    pub(super) fn value(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}
