//! The state of one resource: its holds and its queue.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::held::{Held, Queued};
use super::latch::Latch;
use crate::admission::{self, Turn};
use crate::{
    AttemptId, Claim, Converted, Error, ErrorKind, Fence, Grant, Instant, Mode, Notices, Order,
    Primitive, Resource, Result, Snapshot,
};

/// One resource.
#[derive(Debug)]
pub(super) struct Entry {
    primitive: Primitive,
    pub(super) holds: Vec<Held>,
    pub(super) queue: VecDeque<Queued>,
    last_fence: Option<Fence>,
    /// The permits or segments that there are.
    size: Option<u32>,
    pub(super) latch: Option<Box<Latch>>,
}

/// One step of a store: when it happens, and what it changes beyond the entry.
pub(super) struct Step<'a> {
    pub(super) now: Instant,
    /// The last fence that was given to anybody.
    pub(super) fences: &'a mut u64,
    /// Whom to ring once the store's lock is let go: a waker may come back to it.
    pub(super) rings: &'a mut Vec<Arc<Notify>>,
}

impl Step<'_> {
    fn next_fence(&mut self) -> Fence {
        *self.fences += 1;
        Fence::new(*self.fences)
    }

    fn ring(&mut self, wake: &Arc<Notify>) {
        self.rings.push(Arc::clone(wake));
    }
}

impl Entry {
    pub(super) const fn new(primitive: Primitive) -> Self {
        Self {
            primitive,
            holds: Vec::new(),
            queue: VecDeque::new(),
            last_fence: None,
            size: None,
            latch: None,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.holds.is_empty() && self.queue.is_empty()
    }

    /// Whether an entry made anew would be as good: idle, and without anything that outlasts its
    /// holders: a size, a count, the fence that readers are shown.
    pub(super) fn is_forgettable(&self) -> bool {
        self.is_idle()
            && self.size.is_none()
            && self.latch.is_none()
            && (self.primitive != Primitive::ReadWrite || self.last_fence.is_none())
    }

    /// Ends leases that have run out and lets in who comes next.
    pub(super) fn expire(&mut self, step: &mut Step<'_>) {
        let now = step.now;
        let before = self.holds.len() + self.queue.len();
        if self.holds.iter().any(|held| held.expires_at() <= now) {
            self.holds.retain(|held| held.expires_at() > now);
        }
        if self.queue.iter().any(|queued| queued.expires_at <= now) {
            self.queue.retain(|queued| queued.expires_at > now);
        }
        if self.holds.len() + self.queue.len() < before {
            self.advance(step);
        }
    }

    /// Tries to enter for a claim that may be new, in line, or admitted already.
    pub(super) fn attempt(
        &mut self,
        claim: &Claim,
        wake: &mut Option<Arc<Notify>>,
        notices: &Notices,
        step: &mut Step<'_>,
    ) -> Result<Option<Grant>> {
        if let Some(held) = self.holds.iter().find(|held| held.attempt == claim.attempt) {
            return Ok(Some(held.grant()));
        }
        let place = self.place(claim.attempt);
        if let Some(place) = place {
            self.queue[place].renew(step.now);
        }
        if self.primitive == Primitive::Latch {
            if self.passes_latch(place) {
                return Ok(Some(Grant {
                    fence: Fence::new(0),
                    sent_at: step.now,
                    ttl: claim.ttl,
                    segment: None,
                }));
            }
        } else if let Some(mode) = self.entry_of(claim, place)? {
            if let Some(place) = place {
                self.queue.remove(place);
            }
            self.size = self.size.or(mode.size());
            let grant = self.admit(claim, mode, notices, step);
            // A shared hold or a permit may leave room for the next in line as well.
            self.advance(step);
            return Ok(Some(grant));
        }
        if place.is_none() && claim.wait {
            self.size = self.size.or(claim.mode.size());
            let wake = Arc::clone(wake.get_or_insert_default());
            self.queue
                .push_back(Queued::new(claim, wake, notices, step.now));
        }
        Ok(None)
    }

    /// Whether a newcomer could enter now.
    pub(super) fn would_enter(&self, claim: &Claim) -> Result<bool> {
        let is_held = self.holds.iter().any(|held| held.attempt == claim.attempt);
        Ok(is_held || self.entry_of(claim, self.place(claim.attempt))?.is_some())
    }

    fn place(&self, attempt: AttemptId) -> Option<usize> {
        self.queue
            .iter()
            .position(|queued| queued.claim.attempt == attempt)
    }

    /// How a claim would enter now.
    fn entry_of(&self, claim: &Claim, place: Option<usize>) -> Result<Option<Mode>> {
        let mut mode = claim.mode;
        if let Some(size) = self.size {
            match place {
                None => mode.check_size(size)?,
                Some(_) => mode.check_fits(size)?,
            }
            mode = mode.resized(size);
        }
        let (order, before) = match place {
            None => (claim.order, self.queue.len()),
            Some(place) => (Order::Fair, place),
        };
        let before = self
            .queue
            .iter()
            .take(before)
            .map(|queued| queued.claim.mode);
        Ok(admission::enters(mode, order, &self.modes(), before))
    }

    fn passes_latch(&self, place: Option<usize>) -> bool {
        let is_open = self.latch.as_ref().is_some_and(|latch| latch.is_open());
        // The place stays until it is released: if this answer is lost, the next says the same.
        place.map_or(is_open, |place| self.queue[place].passed)
    }

    /// Lets everybody pass who waits at a latch that has opened.
    pub(super) fn pass_all(&mut self, step: &mut Step<'_>) {
        for queued in &mut self.queue {
            queued.passed = true;
            step.ring(&queued.wake);
        }
    }

    /// Removes a hold or a place in line; whether there was one.
    pub(super) fn remove(&mut self, attempt: AttemptId, step: &mut Step<'_>) -> bool {
        let before = self.holds.len() + self.queue.len();
        self.holds.retain(|held| held.attempt != attempt);
        self.queue.retain(|queued| queued.claim.attempt != attempt);
        let removed = self.holds.len() + self.queue.len() < before;
        if removed {
            self.advance(step);
        }
        removed
    }

    /// See [`Backend::convert`](crate::Backend::convert).
    pub(super) fn convert(
        &mut self,
        attempt: AttemptId,
        mode: Mode,
        step: &mut Step<'_>,
    ) -> Result<Converted> {
        let alone = self.holds.len() == 1 && self.queue.is_empty();
        let Some(held) = self.holds.iter_mut().find(|held| held.attempt == attempt) else {
            return Ok(Converted::NotHeld);
        };
        match (held.mode, mode) {
            (before, after) if before == after => {}
            (Mode::Exclusive, Mode::Shared) => {
                held.mode = mode;
                let fence = held.fence;
                self.advance(step);
                return Ok(Converted::Done(fence));
            }
            (Mode::Shared, Mode::Exclusive) => {
                if !alone {
                    return Ok(Converted::Busy);
                }
                held.mode = mode;
                held.fence = step.next_fence();
                self.last_fence = Some(held.fence);
            }
            (before, after) => {
                let message = format!("a hold that is {before} cannot become {after}");
                return Err(Error::new(ErrorKind::InvalidArgument, message));
            }
        }
        Ok(Converted::Done(held.fence))
    }

    /// See [`Backend::set_size`](crate::Backend::set_size).
    pub(super) fn set_size(&mut self, size: u32, step: &mut Step<'_>) -> bool {
        if self.primitive == Primitive::Segmented && !self.is_idle() {
            return false;
        }
        self.size = Some(size);
        for held in &mut self.holds {
            held.mode = held.mode.resized(size);
        }
        for queued in &mut self.queue {
            queued.claim.mode = queued.claim.mode.resized(size);
            if queued.claim.mode.check_fits(size).is_err() {
                step.ring(&queued.wake);
            }
        }
        self.advance(step);
        true
    }

    /// Lets in whoever may come next, in order.
    fn advance(&mut self, step: &mut Step<'_>) {
        if self.primitive == Primitive::Latch || self.queue.is_empty() {
            return;
        }
        let turns = admission::turn(&self.modes(), self.queue.iter().map(Queued::standing));
        // From behind, so that the places before stay where they are.
        let mut admitted = Vec::with_capacity(turns.len());
        for (place, turn) in turns.into_iter().rev() {
            match turn {
                Turn::Wake => {
                    let first = &mut self.queue[place];
                    first.passed_over = true;
                    step.ring(&first.wake);
                }
                Turn::HandOver(mode) => admitted.extend(self.queue.remove(place).zip(Some(mode))),
            }
        }
        for (queued, mode) in admitted.into_iter().rev() {
            self.admit(&queued.claim, mode, &queued.notices, step);
            step.rings.push(queued.wake);
        }
    }

    fn admit(
        &mut self,
        claim: &Claim,
        mode: Mode,
        notices: &Notices,
        step: &mut Step<'_>,
    ) -> Grant {
        if mode != Mode::Shared {
            self.last_fence = Some(step.next_fence());
        }
        let fence = self.last_fence.unwrap_or(Fence::new(0));
        let held = Held::new(claim, mode, fence, notices, step.now);
        let grant = held.grant();
        self.holds.push(held);
        grant
    }

    fn modes(&self) -> Vec<Mode> {
        self.holds.iter().map(|held| held.mode).collect()
    }

    /// What is left of the lease that ends first, or, if nobody holds, of the first in line.
    pub(super) fn first_expiry(&self, now: Instant) -> Option<Duration> {
        let holds = self.holds.iter().map(Held::expires_at).min();
        let first = holds.or_else(|| self.queue.front().map(|queued| queued.expires_at))?;
        Some(first.saturating_duration_since(now))
    }

    pub(super) fn snapshot(&self, resource: &Resource, now: Instant) -> Snapshot {
        let holders = self.holds.iter().map(|held| held.show(resource, now));
        let waiting = self.queue.iter().filter(|queued| !queued.passed);
        let waiters = waiting.map(|queued| queued.show(resource, now));
        Snapshot {
            resource: resource.clone(),
            fence: self.last_fence,
            holders: holders.collect(),
            waiters: waiters.collect(),
            size: self.size,
            latch: self.latch.as_ref().map(|latch| latch.state()),
        }
    }
}
