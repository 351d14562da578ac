//! How much a watchdog has to look after.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::table::Tenant;
use crate::observe::{Counted, Observer};

/// How many rows of each kind there are, to be read without locking the table.
pub(super) struct Load {
    holds: AtomicUsize,
    places: AtomicUsize,
    observer: Observer,
}

impl Load {
    pub(super) const fn new(observer: Observer) -> Self {
        Self {
            holds: AtomicUsize::new(0),
            places: AtomicUsize::new(0),
            observer,
        }
    }

    pub(super) fn holds(&self) -> usize {
        self.holds.load(Relaxed)
    }

    pub(super) fn places(&self) -> usize {
        self.places.load(Relaxed)
    }

    /// Only the table counts, under its lock.
    pub(super) fn count(&self, tenant: &Tenant, change: i8) {
        let (count, what) = match tenant {
            Tenant::Hold(_) => (&self.holds, Counted::Holds),
            Tenant::Place(_) => (&self.places, Counted::Waiters),
        };
        let change_by = isize::from(change);
        count.store(
            count.load(Relaxed).saturating_add_signed(change_by),
            Relaxed,
        );
        self.observer.counted(what, change);
    }
}
