//! Lies about what comes after what.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use lockkit_core::{
    Attempt, Backend, Claim, Fence, Grant, HoldId, Memory, Released, Resource, Result, Ticket,
};
use tokio::sync::Notify;

use super::lie::{Lie, honest_release};

/// Deletes the counter with the lock.
#[derive(Debug, Default)]
pub(super) struct ResetsFences {
    /// The last fence before the reset.
    zero: Mutex<HashMap<Resource, u64>>,
}

#[async_trait]
impl Lie for ResetsFences {
    async fn attempt(
        &self,
        _: &Memory,
        claim: &Claim,
        ticket: &mut Box<dyn Ticket>,
    ) -> Result<Attempt> {
        let outcome = ticket.attempt().await?;
        let Attempt::Held(grant) = outcome else {
            return Ok(outcome);
        };
        let zeros = self.zero.lock().unwrap_or_else(PoisonError::into_inner);
        let zero = zeros.get(&claim.resource).copied().unwrap_or_default();
        let fence = Fence::new(grant.fence.get().saturating_sub(zero));
        Ok(Attempt::Held(Grant { fence, ..grant }))
    }

    async fn release(&self, truth: &Memory, id: &HoldId) -> Result<Released> {
        if let Some(fence) = truth.inspect(id.resource()).await?.fence {
            let mut zeros = self.zero.lock().unwrap_or_else(PoisonError::into_inner);
            zeros.insert(id.resource().clone(), fence.get());
        }
        honest_release(truth, id).await
    }
}

/// Loses the place of whoever is first in line, who has to queue again.
#[derive(Debug, Default)]
pub(super) struct Unfair(Notify);

#[async_trait]
impl Lie for Unfair {
    async fn changed(&self, ticket: &mut Box<dyn Ticket>) {
        tokio::select! {
            () = ticket.changed() => {}
            () = self.0.notified() => {}
        }
    }

    async fn release(&self, truth: &Memory, id: &HoldId) -> Result<Released> {
        if let [first, _, ..] = &truth.inspect(id.resource()).await?.waiters[..]
            && first.id != *id
        {
            honest_release(truth, &first.id).await?;
            self.0.notify_waiters();
        }
        honest_release(truth, id).await
    }
}
