//! What this backend promises.

use std::time::Duration;

use lockkit_core::{Clock, Descriptor, FenceClass, Guarantee, Primitive};

/// The one word for this backend.
pub(crate) const DRIVER: &str = "redlock";

/// The longest lease unless the URL says otherwise.
pub(crate) const MAX_LEASE: Duration = Duration::from_secs(300);

/// The promises of servers whose settings are not known, which are the least.
pub(crate) static DESCRIPTOR: Descriptor = Descriptor {
    driver: DRIVER,
    guarantee: Guarantee::BestEffort,
    fence: FenceClass::BestEffort,
    primitives: &[Primitive::Mutex],
    ttl: Duration::from_millis(100)..=MAX_LEASE,
    fair: false,
    line: false,
    revocation: true,
    at_once: false,
    wake_up: "polling, at random, up to 200 ms",
    after_crash: "when its lease ends",
    clock: Clock::Boot,
};
