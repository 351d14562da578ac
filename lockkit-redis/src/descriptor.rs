//! What this backend promises.

use std::time::Duration;

use lockkit_core::{Clock, Descriptor, FenceClass, Guarantee, Primitive};

/// The one word for this backend.
pub(crate) const DRIVER: &str = "redis";

/// The promises of a server whose settings are not known, which are the least.
pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    driver: DRIVER,
    guarantee: Guarantee::BestEffort,
    fence: FenceClass::BestEffort,
    primitives: &Primitive::ALL,
    ttl: Duration::from_millis(100)..=Duration::from_secs(24 * 60 * 60),
    fair: true,
    line: true,
    revocation: true,
    at_once: true,
    wake_up: "pushed by the release",
    after_crash: "when its lease ends",
    clock: Clock::Boot,
};
