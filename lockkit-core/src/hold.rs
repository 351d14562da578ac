//! The local truth about one hold: until when, and how it ended.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::{Clock, Fence, Grant, HoldId, Instant, valid_until};

/// Why a hold was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LossReason {
    /// No renewal was confirmed in time: the lease may have run out on the service.
    Expired,
    /// The service says that it is gone: an operator broke it, a session ended, data vanished.
    Gone,
    /// The locker was closed while the guard was alive.
    Closed,
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "no renewal was confirmed before the lease ran out",
            Self::Gone => "the service no longer knows this hold",
            Self::Closed => "the locker was closed",
        })
    }
}

const HELD: u8 = 0;
const RELEASED: u8 = 1;
const EXPIRED: u8 = 2;
const GONE: u8 = 3;
const CLOSED: u8 = 4;

/// One hold, shared by its guards and the watchdog.
///
/// It ends once: whoever moves `end` away from `HELD` has decided, and nothing moves it back.
/// The deadline only matters while `end` is `HELD`, so a renewal that races with the end cannot
/// revive anything, whatever it writes.
pub(crate) struct Hold {
    pub(crate) id: HoldId,
    pub(crate) fence: Fence,
    clock: Clock,
    valid_until: AtomicU64,
    /// When the confirmed request left that `valid_until` counts from. Changed by the watchdog
    /// alone, under the lock of its table.
    confirmed: AtomicU64,
    end: AtomicU8,
    /// How many guards share it; more than one only for a reentrant owner.
    guards: AtomicU32,
    /// Made when first asked for: most guards never need one.
    token: OnceLock<CancellationToken>,
}

impl Hold {
    pub(crate) fn new(id: HoldId, clock: Clock, grant: Grant) -> Self {
        let Grant {
            fence,
            sent_at,
            ttl,
        } = grant;
        Self {
            id,
            fence,
            clock,
            valid_until: AtomicU64::new(valid_until(sent_at, ttl).as_nanos()),
            confirmed: AtomicU64::new(sent_at.as_nanos()),
            end: AtomicU8::new(HELD),
            guards: AtomicU32::new(1),
            token: OnceLock::new(),
        }
    }

    pub(crate) fn valid_until(&self) -> Instant {
        Instant::from_nanos(self.valid_until.load(SeqCst))
    }

    pub(crate) fn remaining(&self) -> Duration {
        self.valid_until()
            .saturating_duration_since(self.clock.now())
    }

    /// Whether it may be believed right now. Finding the deadline passed makes the loss final
    /// here and now, even if the watchdog has not come round to it yet.
    pub(crate) fn is_held(&self) -> bool {
        self.loss().is_none() && self.end.load(SeqCst) == HELD
    }

    /// Why it was lost, if it was.
    pub(crate) fn loss(&self) -> Option<LossReason> {
        // Read in this order: a deadline moved after `end` was read is a renewal in time.
        if self.end.load(SeqCst) == HELD && self.clock.now() >= self.valid_until() {
            self.lose(LossReason::Expired);
        }
        match self.end.load(SeqCst) {
            EXPIRED => Some(LossReason::Expired),
            GONE => Some(LossReason::Gone),
            CLOSED => Some(LossReason::Closed),
            _ => None,
        }
    }

    /// Moves the deadline after a confirmed renewal. The request that left last counts, even if
    /// it was granted less than an earlier one. A renewal that is confirmed after the old deadline
    /// comes too late: the loss may have been told.
    ///
    /// Wakes nobody, so that it can be called under a lock.
    pub(crate) fn renewed(&self, sent_at: Instant, ttl: Duration) {
        let in_time = self.end.load(SeqCst) == HELD && self.clock.now() < self.valid_until();
        if in_time && sent_at.as_nanos() >= self.confirmed.load(SeqCst) {
            self.confirmed.store(sent_at.as_nanos(), SeqCst);
            let until = valid_until(sent_at, ttl);
            self.valid_until.store(until.as_nanos(), SeqCst);
        }
    }

    /// Ends it as lost, unless it has ended before.
    pub(crate) fn lose(&self, reason: LossReason) {
        self.finish(match reason {
            LossReason::Expired => EXPIRED,
            LossReason::Gone => GONE,
            LossReason::Closed => CLOSED,
        });
    }

    /// Ends it as released. `Err` if it was lost before.
    pub(crate) fn end_by_release(&self) -> Result<(), LossReason> {
        match self.loss() {
            Some(reason) => Err(reason),
            None if self.finish(RELEASED) => Ok(()),
            // Lost between the two looks.
            None => Err(self.loss().unwrap_or(LossReason::Expired)),
        }
    }

    fn finish(&self, end: u8) -> bool {
        let first = self.end.compare_exchange(HELD, end, SeqCst, SeqCst).is_ok();
        if first
            && end != RELEASED
            && let Some(token) = self.token.get()
        {
            token.cancel();
        }
        first
    }

    /// The token that is cancelled when the hold is lost.
    pub(crate) fn token(&self) -> &CancellationToken {
        let token = self.token.get_or_init(CancellationToken::new);
        // `finish` may have looked for the token just before it was made.
        if self.loss().is_some() {
            token.cancel();
        }
        token
    }

    /// One more guard shares it. `false` if the last one is letting go.
    pub(crate) fn share(&self) -> bool {
        let more = |n: u32| (n > 0).then(|| n.checked_add(1)).flatten();
        self.guards.fetch_update(SeqCst, SeqCst, more).is_ok()
    }

    /// One guard fewer. `true` if it was the last.
    pub(crate) fn unshare(&self) -> bool {
        self.guards.fetch_sub(1, SeqCst) == 1
    }

    /// The only guard takes it for itself: from now on nobody can share it. `false` if others do.
    pub(crate) fn seclude(&self) -> bool {
        self.guards.compare_exchange(1, 0, SeqCst, SeqCst).is_ok()
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.guards.load(SeqCst) == 0
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold")
            .field("id", &self.id)
            .field("fence", &self.fence)
            .field("remaining", &self.remaining())
            .field("loss", &self.loss())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AttemptId, LockName, Primitive, Resource};

    fn hold(ttl: Duration) -> Hold {
        let resource = Resource::new(Primitive::Mutex, LockName::new("a").unwrap());
        let id = HoldId::new(resource, AttemptId::random());
        let grant = Grant {
            fence: Fence::new(1),
            sent_at: Clock::Tokio.now(),
            ttl,
        };
        Hold::new(id, Clock::Tokio, grant)
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_renewal_does_not_revive() {
        let hold = hold(Duration::from_secs(1));
        tokio::time::advance(Duration::from_secs(1)).await;
        hold.renewed(Clock::Tokio.now(), Duration::from_secs(9));
        assert_eq!(hold.loss(), Some(LossReason::Expired));
        assert_eq!(hold.end_by_release(), Err(LossReason::Expired));
    }

    #[tokio::test(start_paused = true)]
    async fn the_request_that_left_last_counts() {
        let hold = hold(Duration::from_secs(100));
        let first = Clock::Tokio.now();
        tokio::time::advance(Duration::from_secs(1)).await;
        hold.renewed(Clock::Tokio.now(), Duration::from_secs(10));
        assert_eq!(hold.remaining(), Duration::from_millis(9_400));
        hold.renewed(first, Duration::from_secs(100));
        assert_eq!(
            hold.remaining(),
            Duration::from_millis(9_400),
            "an older answer"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_made_after_the_loss_is_cancelled() {
        let hold = hold(Duration::from_secs(5));
        hold.lose(LossReason::Gone);
        hold.lose(LossReason::Closed);
        assert!(hold.token().is_cancelled());
        assert_eq!(
            hold.loss(),
            Some(LossReason::Gone),
            "the first reason stays"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_release_is_no_loss() {
        let hold = hold(Duration::from_secs(1));
        let token = hold.token().clone();
        assert_eq!(hold.end_by_release(), Ok(()));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(!hold.is_held());
        assert_eq!(hold.loss(), None);
        assert!(!token.is_cancelled());
    }

    #[tokio::test]
    async fn the_last_guard_is_last() {
        let hold = hold(Duration::from_secs(1));
        assert!(hold.share());
        assert!(!hold.unshare());
        assert!(hold.unshare());
        assert!(!hold.share(), "nobody joins a hold that is being released");
    }
}
