//! A clock that all processes of the machine share.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds on `CLOCK_MONOTONIC`.
pub(crate) fn nanos() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// Microseconds from one reading to a later one; negative if they are the other way round.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn micros_between(earlier: u64, later: u64) -> f64 {
    (later as f64 - earlier as f64) / 1e3
}
