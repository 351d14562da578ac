//! One hold and one place in line, as a store keeps them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use crate::admission::Standing;
use crate::{AttemptId, Claim, Fence, Grant, HoldId, Holder, Instant, Label, Mode, Notices};
use crate::{Resource, Waiter};

/// One hold.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) attempt: AttemptId,
    pub(super) mode: Mode,
    pub(super) fence: Fence,
    since: Instant,
    /// When the lease was granted or last renewed.
    renewed_at: Instant,
    ttl: Duration,
    label: Label,
    pub(super) detached: bool,
    pub(super) asked_to_release: bool,
    /// Whom to tell if an operator takes it away.
    pub(super) notices: Notices,
}

impl Held {
    pub(super) fn new(
        claim: &Claim,
        mode: Mode,
        fence: Fence,
        notices: &Notices,
        now: Instant,
    ) -> Self {
        Self {
            attempt: claim.attempt,
            mode,
            fence,
            since: now,
            renewed_at: now,
            ttl: claim.ttl,
            label: claim.label.clone(),
            detached: false,
            asked_to_release: false,
            notices: notices.clone(),
        }
    }

    pub(super) fn expires_at(&self) -> Instant {
        self.renewed_at + self.ttl
    }

    pub(super) const fn grant(&self) -> Grant {
        Grant {
            fence: self.fence,
            sent_at: self.renewed_at,
            ttl: self.ttl,
            segment: self.mode.segment(),
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

    pub(super) fn show(&self, resource: &Resource, now: Instant) -> Holder {
        Holder {
            id: HoldId::new(resource.clone(), self.attempt),
            mode: self.mode,
            fence: self.fence,
            label: self.label.clone(),
            held_for: now.saturating_duration_since(self.since),
            remaining: self.expires_at().saturating_duration_since(now),
            detached: self.detached,
            asked_to_release: self.asked_to_release,
        }
    }
}

/// One place in line.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) claim: Claim,
    since: Instant,
    pub(super) expires_at: Instant,
    /// On a latch: whether it has opened since this place was taken.
    pub(super) passed: bool,
    pub(super) passed_over: bool,
    pub(super) wake: Arc<Notify>,
    pub(super) notices: Notices,
}

impl Queued {
    pub(super) fn new(claim: &Claim, wake: Arc<Notify>, notices: &Notices, now: Instant) -> Self {
        Self {
            claim: claim.clone(),
            since: now,
            expires_at: now + claim.ttl,
            passed: false,
            passed_over: false,
            wake,
            notices: notices.clone(),
        }
    }

    pub(super) const fn standing(&self) -> Standing {
        Standing {
            mode: self.claim.mode,
            order: self.claim.order,
            passed_over: self.passed_over,
        }
    }

    pub(super) fn renew(&mut self, now: Instant) -> Duration {
        self.expires_at = now + self.claim.ttl;
        self.claim.ttl
    }

    pub(super) fn show(&self, resource: &Resource, now: Instant) -> Waiter {
        Waiter {
            id: HoldId::new(resource.clone(), self.claim.attempt),
            mode: self.claim.mode,
            order: self.claim.order,
            label: self.claim.label.clone(),
            waited: now.saturating_duration_since(self.since),
        }
    }
}
