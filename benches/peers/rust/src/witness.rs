//! What the lock protects.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicI64, AtomicU64};

/// Sees what only a lock keeps right: one visitor at a time, a count that is read and written in
/// two steps, fences that only rise.
#[derive(Debug, Default)]
pub(crate) struct Witness {
    inside: AtomicI64,
    count: AtomicU64,
    fence: AtomicU64,
    violations: AtomicU64,
}

impl Witness {
    /// Goes in and out again, with the fence of the lock if its library gives one.
    pub(crate) fn visit(&self, fence: Option<u64>) {
        let alone = self.inside.fetch_add(1, SeqCst) == 0;
        let rising = fence.is_none_or(|fence| self.fence.swap(fence, SeqCst) < fence);
        if !(alone && rising) {
            self.violations.fetch_add(1, Relaxed);
        }
        self.count.store(self.count.load(Relaxed) + 1, Relaxed);
        self.inside.fetch_sub(1, SeqCst);
    }

    /// What went wrong in so many visits: rules broken, or increments that overwrote each other.
    pub(crate) fn violations(&self, visits: u64) -> u64 {
        let lost = visits.saturating_sub(self.count.load(SeqCst));
        self.violations.load(SeqCst).max(lost)
    }
}
