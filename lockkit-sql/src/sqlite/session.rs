//! Sessions: what shows that this process lives.

use std::fs::File;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lockkit_core::{Clock, Fence, Grant, Instant};

use super::files::SessionId;
use super::shared::locked;

/// One session of this process. All holds of one lease time share it, so that one row written
/// renews them all.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) ttl_ms: i64,
    /// Locked for as long as it is open, here or in a child that inherited it.
    pub(super) file: File,
    /// When the last heartbeat that was confirmed left.
    confirmed: Mutex<Instant>,
    over: AtomicBool,
}

impl Session {
    /// A session whose row is about to be written. Until that is confirmed its lease is over.
    pub(super) const fn new(id: SessionId, ttl_ms: i64, file: File) -> Self {
        Self {
            id,
            ttl_ms,
            file,
            confirmed: Mutex::new(Instant::from_nanos(0)),
            over: AtomicBool::new(false),
        }
    }

    pub(super) const fn ttl(&self) -> Duration {
        Duration::from_millis(self.ttl_ms.unsigned_abs())
    }

    pub(super) fn confirm(&self, sent_at: Instant) {
        *locked(&self.confirmed) = sent_at;
    }

    pub(super) fn confirmed(&self) -> Instant {
        *locked(&self.confirmed)
    }

    /// Whether a grant made now without a heartbeat has most of its lease left.
    pub(super) fn is_fresh(&self) -> bool {
        !self.is_over()
            && Clock::Boot
                .now()
                .saturating_duration_since(self.confirmed())
                < self.ttl() / 3
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Returns whether it was not over before.
    pub(super) fn end(&self) -> bool {
        !self.over.swap(true, Ordering::AcqRel)
    }

    pub(super) fn grant(&self, fence: i64, segment: Option<u32>) -> Grant {
        Grant {
            fence: Fence::new(fence.unsigned_abs()),
            sent_at: self.confirmed(),
            ttl: self.ttl(),
            segment,
        }
    }
}

/// A lease time as it is stored. The caller has checked its range.
pub(super) fn ttl_ms(ttl: Duration) -> i64 {
    i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX / 4)
}

/// The clock in whole milliseconds, rounded down: what expiries are compared with.
pub(super) fn millis(now: Instant) -> i64 {
    i64::try_from(now.as_nanos() / 1_000_000).unwrap_or(i64::MAX / 4)
}

/// The expiry to store for a lease that begins now: rounded up, so that nobody can find it over
/// before `now + ttl`.
pub(super) fn expiry(now: Instant, ttl_ms: i64) -> i64 {
    millis(now) + 1 + ttl_ms
}

/// What is left until `expires_at`.
pub(super) fn remaining(now_ms: i64, expires_at: i64) -> Duration {
    Duration::from_millis(u64::try_from(expires_at.saturating_sub(now_ms)).unwrap_or(0))
}
