//! When to give up on several locks.

use std::time::Duration;

use crate::acquire::LEAST_LIMIT;
use crate::{Clock, Instant};

/// When to give up, on one clock for all: each locker's own may be another.
#[derive(Clone, Copy)]
pub(crate) struct End {
    wait_until: Option<tokio::time::Instant>,
    /// However short the wait, it is enough to ask for each once where all are near.
    ask_until: Option<tokio::time::Instant>,
}

impl End {
    pub(crate) const NEVER: Self = Self {
        wait_until: None,
        ask_until: None,
    };

    pub(crate) fn after(wait: Option<Duration>) -> Self {
        let now = tokio::time::Instant::now();
        Self {
            wait_until: wait.and_then(|wait| now.checked_add(wait)),
            ask_until: wait.and_then(|wait| now.checked_add(wait.max(LEAST_LIMIT))),
        }
    }

    pub(crate) fn is_over(self) -> bool {
        let now = tokio::time::Instant::now();
        self.ask_until.is_some_and(|end| now >= end)
    }

    /// How long to wait, on this clock.
    pub(crate) fn on(self, clock: Clock) -> Option<Instant> {
        let now = tokio::time::Instant::now();
        let left = self.wait_until?.saturating_duration_since(now);
        Some(clock.now() + left)
    }
}
