//! What this strategy promises.

use std::time::Duration;

use lockkit_core::{Clock, Descriptor, FenceClass, Guarantee, Primitive};

/// The one word for this backend.
pub(super) const DRIVER: &str = "redis-simple";

pub(super) static DESCRIPTOR: Descriptor = Descriptor {
    driver: DRIVER,
    guarantee: Guarantee::BestEffort,
    fence: FenceClass::None,
    primitives: &[Primitive::Mutex],
    ttl: Duration::from_millis(100)..=Duration::from_secs(24 * 60 * 60),
    fair: false,
    line: false,
    revocation: false,
    at_once: false,
    wake_up: "by looking again",
    after_crash: "when its lease ends",
    clock: Clock::Boot,
};
