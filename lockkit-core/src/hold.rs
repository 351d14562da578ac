//! The local truth about one hold: until when, and how it ended.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::observe::{Observer, Since};
use crate::{Clock, Fence, Grant, HoldId, Instant, Mode, Pick, valid_until};

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

impl LossReason {
    /// The one word for it in metrics and records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Gone => "gone",
            Self::Closed => "closed",
        }
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
    /// As it was granted; for a read-write lock, `shared` says how it is held now.
    mode: Mode,
    shared: AtomicBool,
    /// Rises when a reader becomes a writer.
    fence: AtomicU64,
    clock: Clock,
    observer: Observer,
    since: Since,
    valid_until: AtomicU64,
    /// When the confirmed request left that `valid_until` counts from. Changed by the watchdog
    /// alone, under the lock of its table.
    confirmed: AtomicU64,
    /// From when on it is not believed in until a renewal confirms it; 0 if it is.
    doubted: AtomicU64,
    end: AtomicU8,
    /// How many guards share it; more than one only for a reentrant owner.
    guards: AtomicU32,
    /// Made when first asked for: most guards never need one.
    token: OnceLock<CancellationToken>,
    asked_to_release: AtomicBool,
    /// What few holds need, so that the others stay small.
    rare: OnceLock<Box<Rare>>,
}

#[derive(Default)]
struct Rare {
    /// Cancelled when somebody asks the holder to let go.
    asked: CancellationToken,
    /// The other parts of a multi-lock: lost together with this one.
    kin: OnceLock<Box<[Weak<Hold>]>>,
}

impl Hold {
    pub(crate) fn new(
        id: HoldId,
        mode: Mode,
        clock: Clock,
        observer: Observer,
        grant: Grant,
    ) -> Self {
        let Grant {
            fence,
            sent_at,
            ttl,
            segment,
        } = grant;
        let mode = match (mode, segment) {
            (Mode::Segment { of, .. }, Some(segment)) => Mode::Segment {
                pick: Pick::Only(segment),
                of,
            },
            _ => mode,
        };
        Self {
            id,
            mode,
            shared: AtomicBool::new(mode == Mode::Shared),
            fence: AtomicU64::new(fence.get()),
            clock,
            observer,
            since: Since::now(clock),
            valid_until: AtomicU64::new(valid_until(sent_at, ttl).as_nanos()),
            confirmed: AtomicU64::new(sent_at.as_nanos()),
            doubted: AtomicU64::new(0),
            end: AtomicU8::new(HELD),
            guards: AtomicU32::new(1),
            token: OnceLock::new(),
            asked_to_release: AtomicBool::new(false),
            rare: OnceLock::new(),
        }
    }

    pub(crate) fn fence(&self) -> Fence {
        Fence::new(self.fence.load(SeqCst))
    }

    /// How it is held now.
    pub(crate) fn mode(&self) -> Mode {
        match self.mode {
            Mode::Exclusive | Mode::Shared if self.shared.load(SeqCst) => Mode::Shared,
            Mode::Shared => Mode::Exclusive,
            mode => mode,
        }
    }

    /// The service has confirmed that it is held in this mode, with this fence.
    pub(crate) fn converted(&self, mode: Mode, fence: Fence) {
        self.fence.store(fence.get(), SeqCst);
        self.shared.store(mode == Mode::Shared, SeqCst);
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
        self.loss().is_none() && self.end.load(SeqCst) == HELD && !self.is_doubted()
    }

    /// Whether the service may have forgotten it, and has not been asked yet.
    pub(crate) fn is_doubted(&self) -> bool {
        self.doubted.load(SeqCst) != 0
    }

    /// Nobody believes in it until a renewal that is sent from now on confirms it.
    pub(crate) fn doubt(&self, now: Instant) {
        self.doubted.store(now.as_nanos().max(1), SeqCst);
    }

    /// Why it was lost, if it was.
    pub(crate) fn loss(&self) -> Option<LossReason> {
        // Read in this order: a deadline moved after `end` was read is a renewal in time.
        if self.end.load(SeqCst) == HELD && self.clock.now() >= self.valid_until() {
            self.lose(LossReason::Expired);
        }
        reason(self.end.load(SeqCst))
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
            if sent_at.as_nanos() >= self.doubted.load(SeqCst) {
                self.doubted.store(0, SeqCst);
            }
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
        let first = self.finish_alone(end);
        if first && end != RELEASED {
            for other in self.kin() {
                other.finish_alone(end);
            }
        }
        first
    }

    fn finish_alone(&self, end: u8) -> bool {
        let first = self.end.compare_exchange(HELD, end, SeqCst, SeqCst).is_ok();
        if first {
            if end != RELEASED
                && let Some(token) = self.token.get()
            {
                token.cancel();
            }
            let Self {
                observer,
                id,
                since,
                clock,
                ..
            } = self;
            observer.ended(id, *since, *clock, reason(end));
        }
        first
    }

    /// Makes these holds the parts of one: whatever ends one of them by a loss ends all.
    pub(crate) fn join(parts: &[Arc<Self>]) {
        for part in parts {
            let others = parts.iter().filter(|other| !Arc::ptr_eq(part, other));
            // Done once, when the holds are new.
            let rare = part.rare.get_or_init(Box::default);
            let _ = rare.kin.set(others.map(Arc::downgrade).collect());
        }
        // What was lost or asked before it had kin.
        for part in parts {
            if let Some(reason) = part.loss() {
                for other in part.kin() {
                    other.lose(reason);
                }
            }
            if part.is_asked_to_release() {
                part.ask_to_release();
            }
        }
    }

    fn kin(&self) -> impl Iterator<Item = Arc<Self>> {
        let kin = self.rare.get().and_then(|rare| rare.kin.get());
        kin.into_iter().flatten().filter_map(Weak::upgrade)
    }

    /// Somebody asks the holder to let go.
    pub(crate) fn ask_to_release(&self) {
        self.asked();
        for other in self.kin() {
            other.asked();
        }
    }

    fn asked(&self) {
        self.asked_to_release.store(true, SeqCst);
        if let Some(rare) = self.rare.get() {
            rare.asked.cancel();
        }
    }

    pub(crate) fn is_asked_to_release(&self) -> bool {
        self.asked_to_release.load(SeqCst)
    }

    /// The token that is cancelled when somebody asks the holder to let go.
    pub(crate) fn asked_token(&self) -> &CancellationToken {
        let token = &self.rare.get_or_init(Box::default).asked;
        // `asked` may have looked for the token just before it was made.
        if self.is_asked_to_release() {
            token.cancel();
        }
        token
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

    /// Takes that back.
    pub(crate) fn unseclude(&self) {
        self.guards.store(1, SeqCst);
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.guards.load(SeqCst) == 0
    }
}

const fn reason(end: u8) -> Option<LossReason> {
    match end {
        EXPIRED => Some(LossReason::Expired),
        GONE => Some(LossReason::Gone),
        CLOSED => Some(LossReason::Closed),
        _ => None,
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold")
            .field("id", &self.id)
            .field("mode", &self.mode())
            .field("fence", &self.fence())
            .field("remaining", &self.remaining())
            .field("loss", &self.loss())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "hold_tests.rs"]
mod tests;
