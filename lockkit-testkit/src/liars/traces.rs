//! Lies about what is left behind.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use lockkit_core::{Attempt, AttemptId, Backend, Claim, HoldId, Memory, Released, Result, Ticket};

use super::lie::{Lie, honest_release};

/// Releases holds only: whoever stops waiting stays in line.
#[derive(Debug, Default)]
pub(super) struct LeaksPlaces;

#[async_trait]
impl Lie for LeaksPlaces {
    async fn release(&self, truth: &Memory, id: &HoldId) -> Result<Released> {
        let waiters = truth.inspect(id.resource()).await?.waiters;
        if waiters.iter().any(|waiter| waiter.id == *id) {
            return Ok(Released::NotHeld);
        }
        honest_release(truth, id).await
    }
}

/// Queues first and looks whether it wanted to wait later.
#[derive(Debug, Default)]
pub(super) struct TriesTakePlaces;

#[async_trait]
impl Lie for TriesTakePlaces {
    fn claim(&self, claim: Claim) -> Claim {
        Claim {
            wait: true,
            ..claim
        }
    }
}

/// Does not recognise its own hold when it asks again.
#[derive(Debug, Default)]
pub(super) struct InItsOwnWay {
    granted: Mutex<HashSet<AttemptId>>,
}

#[async_trait]
impl Lie for InItsOwnWay {
    async fn attempt(
        &self,
        _: &Memory,
        claim: &Claim,
        ticket: &mut Box<dyn Ticket>,
    ) -> Result<Attempt> {
        let outcome = ticket.attempt().await?;
        let mut granted = self.granted.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(outcome, Attempt::Held(_)) && !granted.insert(claim.attempt) {
            return Ok(Attempt::Busy {
                recheck_after: None,
            });
        }
        Ok(outcome)
    }
}
