//! Who holds and who waits.

use std::time::Duration;

use crate::{Fence, HoldId, Label, Mode, Order, Resource};

/// The state of one resource at one moment, as the service saw it.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// What this is about.
    pub resource: Resource,
    /// The highest fencing token ever granted; `None` if there was no grant yet.
    pub fence: Option<Fence>,
    /// Who holds it.
    pub holders: Vec<Holder>,
    /// Who waits, first in line first, in the service's own order.
    pub waiters: Vec<Waiter>,
    /// How many permits or segments there are, where the name has that.
    pub size: Option<u32>,
    /// The count of a latch; `None` unless it is one and was set.
    pub latch: Option<LatchState>,
}

/// The count of a latch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatchState {
    /// How many are still to come; it is open at 0.
    pub left: u32,
    /// What it was set to.
    pub of: u32,
}

impl LatchState {
    /// Whether everybody has come.
    #[must_use]
    pub const fn is_open(self) -> bool {
        self.left == 0
    }
}

impl Snapshot {
    /// A resource that nobody holds or waits for.
    #[must_use]
    pub const fn idle(resource: Resource, fence: Option<Fence>) -> Self {
        Self {
            resource,
            fence,
            holders: Vec::new(),
            waiters: Vec::new(),
            size: None,
            latch: None,
        }
    }

    /// Whether nobody holds, nobody waits, and no latch is waiting for participants.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.holders.is_empty()
            && self.waiters.is_empty()
            && self.latch.is_none_or(LatchState::is_open)
    }
}

/// One hold.
#[derive(Clone, Debug)]
pub struct Holder {
    /// The id that releases it.
    pub id: HoldId,
    /// How it is held.
    pub mode: Mode,
    /// Its fencing token.
    pub fence: Fence,
    /// Who holds it.
    pub label: Label,
    /// How long it has been held.
    pub held_for: Duration,
    /// What is left of its lease, if it is not renewed.
    pub remaining: Duration,
    /// Whether it lives by its own expiry instead of its process's session.
    pub detached: bool,
    /// Whether its holder was asked to let go.
    pub asked_to_release: bool,
}

/// One place in line.
#[derive(Clone, Debug)]
pub struct Waiter {
    /// The id that withdraws it.
    pub id: HoldId,
    /// How it wants to hold.
    pub mode: Mode,
    /// Whether it let others pass.
    pub order: Order,
    /// Who waits.
    pub label: Label,
    /// How long it has waited.
    pub waited: Duration,
}
