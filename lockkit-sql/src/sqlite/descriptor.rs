//! What this backend promises, as data.

use std::time::Duration;

use lockkit_core::{Clock, Descriptor, FenceClass, Guarantee, Primitive};

pub(super) const DRIVER: &str = "sqlite";

pub(super) static DESCRIPTOR: Descriptor = Descriptor {
    driver: DRIVER,
    guarantee: Guarantee::DurableSingle,
    fence: FenceClass::Durable,
    primitives: &Primitive::ALL,
    ttl: Duration::from_millis(500)..=Duration::from_secs(24 * 3600),
    fair: true,
    line: true,
    revocation: true,
    at_once: true,
    wake_up: "inotify",
    after_crash: "at once",
    clock: Clock::Boot,
};
