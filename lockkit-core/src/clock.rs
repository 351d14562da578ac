//! The clock that leases are counted on.

use std::ops::{Add, Sub};
use std::sync::OnceLock;
use std::time::Duration;

/// A point in time on a [`Clock`], in nanoseconds since its zero: good for 584 years. Only points
/// of one clock compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// A point so many nanoseconds after the clock's zero.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the clock's zero.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to this point, zero if it lies behind.
    #[must_use]
    pub const fn saturating_duration_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Add<Duration> for Instant {
    type Output = Self;

    /// Saturates instead of overflowing: "for ever" is a legal duration.
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanos(duration)))
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;

    /// Stops at the clock's zero.
    fn sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(duration)))
    }
}

/// Where the time comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Clock {
    /// `CLOCK_BOOTTIME`: never set, the same for every process of the machine, and it counts
    /// while the machine is suspended, as a server elsewhere does. (`std::time::Instant` is
    /// `CLOCK_MONOTONIC` on Linux and stops in suspend, so a laptop would wake up believing in a
    /// lock that ran out hours ago.)
    #[default]
    Boot,
    /// The clock of tokio, which tests can pause and advance. For backends that live in this
    /// process.
    Tokio,
}

impl Clock {
    /// The present moment.
    #[must_use]
    pub fn now(self) -> Instant {
        match self {
            Self::Boot => boottime(),
            Self::Tokio => {
                static ZERO: OnceLock<std::time::Instant> = OnceLock::new();
                let zero = *ZERO.get_or_init(|| {
                    // An hour of leeway: a runtime that was paused earlier is behind this reading.
                    let now = std::time::Instant::now();
                    now.checked_sub(Duration::from_secs(3600)).unwrap_or(now)
                });
                let now = tokio::time::Instant::now().into_std();
                Instant(nanos(now.saturating_duration_since(zero)))
            }
        }
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn boottime() -> Instant {
    since_zero(rustix::time::clock_gettime(rustix::time::ClockId::Boottime))
}

/// Elsewhere `CLOCK_MONOTONIC`, which on macOS and Windows does count suspended time.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn boottime() -> Instant {
    since_zero(rustix::time::clock_gettime(
        rustix::time::ClockId::Monotonic,
    ))
}

fn since_zero(time: rustix::time::Timespec) -> Instant {
    Instant(time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn for_ever_does_not_overflow() {
        let now = Clock::Boot.now();
        assert!(now + Duration::MAX > now);
        assert_eq!((now - Duration::MAX).as_nanos(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn tokio_clock_follows_paused_time() {
        let before = Clock::Tokio.now();
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(
            Clock::Tokio.now().saturating_duration_since(before),
            Duration::from_secs(5)
        );
    }
}
