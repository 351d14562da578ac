//! How much a watchdog has to look after.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::table::Tenant;

/// How many rows of each kind there are, to be read without locking the table.
#[derive(Default)]
pub(super) struct Load {
    holds: AtomicUsize,
    places: AtomicUsize,
}

impl Load {
    pub(super) fn holds(&self) -> usize {
        self.holds.load(Relaxed)
    }

    pub(super) fn places(&self) -> usize {
        self.places.load(Relaxed)
    }

    /// Only the table counts, under its lock.
    pub(super) fn count(&self, tenant: &Tenant, change: impl FnOnce(usize) -> usize) {
        let count = match tenant {
            Tenant::Hold(_) => &self.holds,
            Tenant::Place(_) => &self.places,
        };
        count.store(change(count.load(Relaxed)), Relaxed);
    }
}
