//! How long a grant may be believed.

use std::time::Duration;

use crate::Instant;

/// The assumed bound on how much faster the service's clock runs than ours: one in a hundred.
const CLOCK_RATE_BOUND: u64 = 100;

/// The moment from which a hold must no longer be believed.
///
/// `sent_at` is the clock just before the request left that the service confirmed, `ttl` what the
/// service granted. The service began to count after `sent_at`, so it cannot hand the lock on
/// before `sent_at + ttl` on its own clock; one percent for clocks of different rate and a margin
/// for acting on the news are taken off. Counting from the reply would be wrong: a reply may be
/// any time late. The rule is Gray and Cheriton's, *Leases* (SOSP 1989), section 2, with client-go's
/// statement that only the *rate* of two clocks is assumed, never their difference.
#[must_use]
pub fn valid_until(sent_at: Instant, ttl: Duration) -> Instant {
    sent_at + ttl.saturating_sub(kept_back(ttl))
}

/// How much later than [`valid_until`] the lease ends on the service: what is kept back for clocks
/// of different rate and for acting on the loss.
pub(crate) fn kept_back(ttl: Duration) -> Duration {
    let ttl = u64::try_from(ttl.as_nanos()).unwrap_or(u64::MAX);
    Duration::from_nanos((ttl / CLOCK_RATE_BOUND).saturating_add(margin(ttl)))
}

/// The nanoseconds for acting on a loss: a twentieth of the lease, 50 ms at least, and never more
/// than a quarter, so that very short leases stay usable.
fn margin(ttl: u64) -> u64 {
    (ttl / 20).max(50_000_000).min(ttl / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_scales_with_the_lease() {
        let until = |ms| valid_until(Instant::from_nanos(0), Duration::from_millis(ms)).as_nanos();
        assert_eq!(until(30_000), 28_200_000_000, "30 s less 1 % less 1.5 s");
        assert_eq!(until(1_000), 940_000_000, "1 s less 1 % less 50 ms");
        assert_eq!(until(100), 74_000_000, "100 ms less 1 % less a quarter");
    }
}
