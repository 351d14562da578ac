//! Which names others wanted lately.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use foldhash::fast::FixedState;
use lockkit_core::Instant;

/// How long a name counts as wanted after it was seen to be.
const LATELY: Duration = Duration::from_secs(1);

/// How many groups of names are told apart.
const GROUPS: usize = 512;

/// Remembers for a while, and more or less, for which names there was somebody else.
///
/// Only a hint about which request is likely to be the right one: if it is wrong, a second one follows.
#[derive(Debug)]
pub(crate) struct Contention([AtomicU64; GROUPS]);

impl Contention {
    pub(crate) const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; GROUPS])
    }

    /// Somebody else holds or wants it.
    pub(crate) fn seen(&self, key: &str, now: Instant) {
        let until = (now + LATELY).as_nanos();
        self.group(key).store(until, Ordering::Relaxed);
    }

    /// Whether there was somebody else lately.
    pub(crate) fn is_likely(&self, key: &str, now: Instant) -> bool {
        now.as_nanos() < self.group(key).load(Ordering::Relaxed)
    }

    fn group(&self, key: &str) -> &AtomicU64 {
        let [low, high, ..] = FixedState::default().hash_one(key).to_ne_bytes();
        &self.0[usize::from(u16::from_ne_bytes([low, high])) % GROUPS]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contention_is_forgotten_after_a_while() {
        let contention = Contention::new();
        let now = Instant::from_nanos(5);
        assert!(!contention.is_likely("a", now));
        contention.seen("a", now);
        assert!(contention.is_likely("a", now));
        assert!(!contention.is_likely("a", now + LATELY));
    }
}
