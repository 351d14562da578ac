//! One claim: asking, until it is held.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lockkit_core::{Attempt, Claim, Clock, Fence, Grant, Instant, Result, Ticket};

use super::attempt::take;
use super::backend::State;
use super::change::Change;
use crate::transport::Lane;

/// How long to wait before looking again, in milliseconds: drawn anew each time, so that those who
/// wait for one lock do not look in one instant.
const POLL: std::ops::Range<u64> = 30..150;

#[derive(Debug)]
pub(super) struct SimpleTicket {
    state: Arc<State>,
    claim: Claim,
    /// An earlier request took the lock, or may have: its answer was lost.
    may_hold: bool,
}

impl SimpleTicket {
    pub(super) const fn new(state: Arc<State>, claim: Claim) -> Self {
        Self {
            state,
            claim,
            may_hold: false,
        }
    }

    fn held(&self, sent_at: Instant) -> Attempt {
        self.state.waiting.remove(self.claim.attempt);
        Attempt::Held(Grant {
            fence: Fence::new(0),
            sent_at,
            ttl: self.claim.ttl,
            segment: None,
        })
    }

    /// Whether it is held under this attempt, which gives it another lease if so.
    async fn is_ours(&self) -> Result<bool> {
        let id = self.claim.id();
        let answers = self.state.change(Lane::Work, Change::Renew, &[&id]).await?;
        Ok(answers[0].lease > 0)
    }
}

#[async_trait]
impl Ticket for SimpleTicket {
    async fn attempt(&mut self) -> Result<Attempt> {
        let may_hold = std::mem::replace(&mut self.may_hold, true);
        let sent_at = Clock::Boot.now();
        if take(&self.state.shared, &self.claim).await? {
            return Ok(self.held(sent_at));
        }
        let sent_at = Clock::Boot.now();
        if may_hold && self.is_ours().await? {
            return Ok(self.held(sent_at));
        }
        // This request took nothing. An earlier one that nobody answered might still arrive.
        self.may_hold = may_hold;
        if self.claim.wait {
            self.state.waiting.add(self.claim.attempt, self.claim.ttl);
        }
        let pause = Duration::from_millis(rand::random_range(POLL));
        Ok(Attempt::Busy {
            recheck_after: Some(pause),
        })
    }

    /// Never: nothing is heard of a release, and when to look again was said by the attempt.
    async fn changed(&mut self) {
        std::future::pending().await
    }
}

impl Drop for SimpleTicket {
    fn drop(&mut self) {
        self.state.waiting.remove(self.claim.attempt);
    }
}
