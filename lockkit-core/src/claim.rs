//! What an acquire call asks for, and what it is given.

use std::time::Duration;

use crate::{AttemptId, Fence, HoldId, Instant, Label, Mode, Order, Resource};

/// One acquire call, as a backend sees it. Already validated.
#[derive(Clone, Debug)]
pub struct Claim {
    /// What to hold.
    pub resource: Resource,
    /// How to hold it.
    pub mode: Mode,
    /// Whether it may pass others who wait.
    pub order: Order,
    /// The lease to ask for; the grant says what was given.
    pub ttl: Duration,
    /// The identity of this call, on every request that belongs to it.
    pub attempt: AttemptId,
    /// Who asks, for people.
    pub label: Label,
    /// Whether a busy attempt takes a place in line (`true`) or leaves no trace (`false`).
    pub wait: bool,
}

impl Claim {
    /// The id under which this claim's hold, or place in line, is renewed and released.
    #[must_use]
    pub fn id(&self) -> HoldId {
        HoldId::new(self.resource.clone(), self.attempt)
    }
}

/// The outcome of one [`attempt`](crate::Ticket::attempt).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// It is ours.
    Held(Grant),
    /// Somebody else is before us.
    Busy {
        /// When to try again even if nothing is heard: the holder's remaining lease, if the
        /// backend knows it. Core adds jitter and bounds.
        recheck_after: Option<Duration>,
    },
}

/// The terms of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The fencing token.
    pub fence: Fence,
    /// The clock just before the request left that the service has confirmed, be it the acquire
    /// itself or, where a session carries the lease, the session's last confirmed renewal.
    pub sent_at: Instant,
    /// The lease, counted from `sent_at`, as the service granted it.
    pub ttl: Duration,
    /// Which segment it is, of a segmented lock.
    pub segment: Option<u32>,
}

/// The outcome of an attempt at several resources at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Together {
    /// All are ours: one grant for each claim, in the order of the claims.
    Held(Vec<Grant>),
    /// At least one was not free. None is held, and nobody waits.
    Busy,
    /// This backend takes one at a time.
    OneByOne,
}

/// The outcome of changing how something is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Converted {
    /// It is held in the mode asked for; with the fence of that.
    Done(Fence),
    /// Others hold as well, or wait. Nothing was changed.
    Busy,
    /// There is no hold under this id. Final, as [`Renewal::Gone`].
    NotHeld,
}

/// The outcome of one participant's step at a latch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountDown {
    /// So many are left. The same answer, less what others did meanwhile, to a step repeated.
    Left(u32),
    /// The latch was never set, so there is nothing to count.
    NotSet,
}

/// The outcome of renewing one hold or one place in line.
#[derive(Debug)]
pub enum Renewal {
    /// Confirmed for another `ttl` from `sent_at`.
    Renewed {
        /// The clock just before the confirmed request left.
        sent_at: Instant,
        /// The lease as granted.
        ttl: Duration,
    },
    /// The service does not know it any more. Final: a renewal must never bring it back.
    Gone,
    /// Nobody knows; the old deadline runs on.
    Unknown(crate::Error),
}

/// The outcome of a release, as the service saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// It was there under this id, and it is gone now.
    Done,
    /// There was nothing under this id: released before, run out, broken by an operator, or
    /// never granted. Nobody else's hold was touched.
    NotHeld,
}
