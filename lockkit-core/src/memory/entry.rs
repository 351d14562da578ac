//! The state of one resource: its holds and its queue.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use crate::admission::{self, Next};
use crate::{AttemptId, Fence, Grant, HoldId, Holder, Instant, Label, Mode, Notices, Waiter};
use crate::{Claim, Resource, Snapshot};

/// One hold.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) attempt: AttemptId,
    mode: Mode,
    fence: Fence,
    since: Instant,
    /// When the lease was granted or last renewed.
    renewed_at: Instant,
    ttl: Duration,
    label: Label,
    detached: bool,
    /// Whom to tell if an operator takes it away.
    pub(super) notices: Notices,
}

impl Held {
    pub(super) fn expires_at(&self) -> Instant {
        self.renewed_at + self.ttl
    }

    pub(super) const fn grant(&self) -> Grant {
        Grant {
            fence: self.fence,
            sent_at: self.renewed_at,
            ttl: self.ttl,
        }
    }

    pub(super) const fn renew(&mut self, now: Instant) -> Duration {
        self.renewed_at = now;
        self.ttl
    }

    pub(super) const fn detach(&mut self, now: Instant, ttl: Duration) {
        self.detached = true;
        self.renewed_at = now;
        self.ttl = ttl;
    }
}

/// One place in line.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) claim: Claim,
    since: Instant,
    expires_at: Instant,
    passed_over: bool,
    wake: Arc<Notify>,
    notices: Notices,
}

impl Queued {
    pub(super) fn renew(&mut self, now: Instant) -> Duration {
        self.expires_at = now + self.claim.ttl;
        self.claim.ttl
    }
}

/// One resource.
#[derive(Debug, Default)]
pub(super) struct Entry {
    pub(super) holds: Vec<Held>,
    pub(super) queue: VecDeque<Queued>,
    last_fence: Option<Fence>,
    /// Whom to ring once the store's lock is let go: a waker may come back to it.
    pub(super) rings: Vec<Arc<Notify>>,
}

impl Entry {
    pub(super) fn is_idle(&self) -> bool {
        self.holds.is_empty() && self.queue.is_empty()
    }

    /// Ends leases that have run out and lets in who comes next.
    pub(super) fn expire(&mut self, now: Instant, fences: &mut u64) {
        let before = self.holds.len() + self.queue.len();
        if self.holds.iter().any(|held| held.expires_at() <= now) {
            self.holds.retain(|held| held.expires_at() > now);
        }
        if self.queue.iter().any(|queued| queued.expires_at <= now) {
            self.queue.retain(|queued| queued.expires_at > now);
        }
        if self.holds.len() + self.queue.len() < before {
            self.advance(now, fences);
        }
    }

    /// Tries to enter for a claim that may be new, in line, or admitted already.
    pub(super) fn attempt(
        &mut self,
        claim: &Claim,
        wake: &mut Option<Arc<Notify>>,
        notices: &Notices,
        now: Instant,
        fences: &mut u64,
    ) -> Option<Grant> {
        if let Some(held) = self.holds.iter().find(|held| held.attempt == claim.attempt) {
            return Some(held.grant());
        }
        let place = self
            .queue
            .iter()
            .position(|queued| queued.claim.attempt == claim.attempt);
        if let Some(place) = place {
            self.queue[place].renew(now);
        }
        let holds = self.modes();
        let enters = match place {
            Some(0) => admission::compatible(claim.mode, &holds),
            Some(_) => false,
            None => {
                let waiting = self.queue.len();
                admission::newcomer_enters(claim.mode, claim.order, &holds, waiting)
            }
        };
        if enters {
            if place.is_some() {
                self.queue.pop_front();
            }
            let grant = self.admit(claim, notices, now, fences);
            // A shared hold or a permit may leave room for the next in line as well.
            self.advance(now, fences);
            return Some(grant);
        }
        if place.is_none() && claim.wait {
            self.queue.push_back(Queued {
                claim: claim.clone(),
                since: now,
                expires_at: now + claim.ttl,
                passed_over: false,
                wake: Arc::clone(wake.get_or_insert_default()),
                notices: notices.clone(),
            });
        }
        None
    }

    /// Removes a hold or a place in line; whether there was one.
    pub(super) fn remove(&mut self, attempt: AttemptId, now: Instant, fences: &mut u64) -> bool {
        let before = self.holds.len() + self.queue.len();
        self.holds.retain(|held| held.attempt != attempt);
        self.queue.retain(|queued| queued.claim.attempt != attempt);
        let removed = self.holds.len() + self.queue.len() < before;
        if removed {
            self.advance(now, fences);
        }
        removed
    }

    /// Lets in whoever may come next, first in line first.
    fn advance(&mut self, now: Instant, fences: &mut u64) {
        while let Some(first) = self.queue.front_mut() {
            let holds: Vec<Mode> = self.holds.iter().map(|held| held.mode).collect();
            let (mode, order) = (first.claim.mode, first.claim.order);
            match admission::next(mode, order, first.passed_over, &holds) {
                Next::Wait => return,
                Next::Wake => {
                    first.passed_over = true;
                    self.rings.push(Arc::clone(&first.wake));
                    return;
                }
                Next::HandOver => {
                    let Some(first) = self.queue.pop_front() else {
                        return;
                    };
                    self.admit(&first.claim, &first.notices, now, fences);
                    self.rings.push(Arc::clone(&first.wake));
                }
            }
        }
    }

    fn admit(&mut self, claim: &Claim, notices: &Notices, now: Instant, fences: &mut u64) -> Grant {
        *fences += 1;
        let fence = Fence::new(*fences);
        self.last_fence = Some(fence);
        self.holds.push(Held {
            attempt: claim.attempt,
            mode: claim.mode,
            fence,
            since: now,
            renewed_at: now,
            ttl: claim.ttl,
            label: claim.label.clone(),
            detached: false,
            notices: notices.clone(),
        });
        Grant {
            fence,
            sent_at: now,
            ttl: claim.ttl,
        }
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
        let id = |attempt| HoldId::new(resource.clone(), attempt);
        let holders = self.holds.iter().map(|held| Holder {
            id: id(held.attempt),
            mode: held.mode,
            fence: held.fence,
            label: held.label.clone(),
            held_for: now.saturating_duration_since(held.since),
            remaining: held.expires_at().saturating_duration_since(now),
            detached: held.detached,
        });
        let waiters = self.queue.iter().map(|queued| Waiter {
            id: id(queued.claim.attempt),
            mode: queued.claim.mode,
            order: queued.claim.order,
            label: queued.claim.label.clone(),
            waited: now.saturating_duration_since(queued.since),
        });
        Snapshot {
            resource: resource.clone(),
            fence: self.last_fence,
            holders: holders.collect(),
            waiters: waiters.collect(),
        }
    }
}
