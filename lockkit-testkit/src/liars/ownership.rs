//! Lies about whose hold it is.

use async_trait::async_trait;
use lockkit_core::{Attempt, Backend, Claim, HoldId, Memory, Released, Result, Ticket};

use super::lie::{Lie, forged, honest_release};

/// Deletes the lock without looking at the id in it.
#[derive(Debug, Default)]
pub(super) struct NoOwnerCheck;

#[async_trait]
impl Lie for NoOwnerCheck {
    async fn release(&self, truth: &Memory, id: &HoldId) -> Result<Released> {
        let mut released = honest_release(truth, id).await?;
        for holder in truth.inspect(id.resource()).await?.holders {
            released = honest_release(truth, &holder.id).await?;
        }
        Ok(released)
    }
}

/// Checks the id, and then counts something down that is not there any more.
#[derive(Debug, Default)]
pub(super) struct FreesTheNext;

#[async_trait]
impl Lie for FreesTheNext {
    async fn release(&self, truth: &Memory, id: &HoldId) -> Result<Released> {
        let released = honest_release(truth, id).await?;
        if released == Released::NotHeld {
            for holder in truth.inspect(id.resource()).await?.holders {
                honest_release(truth, &holder.id).await?;
            }
        }
        Ok(released)
    }
}

/// Takes a busy answer for a grant.
#[derive(Debug, Default)]
pub(super) struct ForgetsToWait;

#[async_trait]
impl Lie for ForgetsToWait {
    async fn attempt(
        &self,
        truth: &Memory,
        claim: &Claim,
        ticket: &mut Box<dyn Ticket>,
    ) -> Result<Attempt> {
        match ticket.attempt().await? {
            Attempt::Busy { .. } => forged(truth, claim).await,
            held => Ok(held),
        }
    }
}

/// Tells the operator what he wants to hear.
#[derive(Debug, Default)]
pub(super) struct IgnoresEviction;

#[async_trait]
impl Lie for IgnoresEviction {
    async fn evict(&self, _: &Memory, _: &HoldId) -> Result<Released> {
        Ok(Released::Done)
    }
}
