//! Claims of this process that wait.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use foldhash::HashMap;
use lockkit_core::AttemptId;

/// Claims that wait, with their leases. The server does not know them: there is no line, and so their
/// places need no renewal.
#[derive(Debug, Default)]
pub(super) struct Waiting(Mutex<HashMap<AttemptId, Duration>>);

impl Waiting {
    pub(super) fn add(&self, attempt: AttemptId, ttl: Duration) {
        self.locked().insert(attempt, ttl);
    }

    pub(super) fn remove(&self, attempt: AttemptId) {
        self.locked().remove(&attempt);
    }

    /// The lease that a claim waits for.
    pub(super) fn ttl(&self, attempt: AttemptId) -> Option<Duration> {
        self.locked().get(&attempt).copied()
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<AttemptId, Duration>> {
        // Nothing in here panics half-way through a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
