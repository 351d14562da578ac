//! Lies about several holds, segments or names at once.

use async_trait::async_trait;
use lockkit_core::{
    Attempt, Backend, Claim, HoldId, Memory, Mode, Pick, Released, Resource, Result, Ticket,
    Together,
};
use tokio::sync::Notify;

use super::lie::{Lie, forged, honest_release};

/// Takes one after the other, and forgets to give back when one is busy.
#[derive(Debug, Default)]
pub(super) struct LeaksOnFailure;

#[async_trait]
impl Lie for LeaksOnFailure {
    async fn attempt_all(&self, truth: &Memory, claims: &[Claim]) -> Result<Together> {
        let mut grants = Vec::new();
        for claim in claims {
            match truth.enter(claim.clone())?.attempt().await? {
                Attempt::Held(grant) => grants.push(grant),
                Attempt::Busy { .. } => return Ok(Together::Busy),
            }
        }
        Ok(Together::Held(grants))
    }
}

/// Gives the segment of a key to whoever has the key.
#[derive(Debug, Default)]
pub(super) struct SharesSegments;

#[async_trait]
impl Lie for SharesSegments {
    async fn attempt(
        &self,
        truth: &Memory,
        claim: &Claim,
        ticket: &mut Box<dyn Ticket>,
    ) -> Result<Attempt> {
        let outcome = ticket.attempt().await?;
        let has_key = matches!(
            claim.mode,
            Mode::Segment {
                pick: Pick::Only(_),
                ..
            }
        );
        match outcome {
            Attempt::Busy { .. } if has_key => forged(truth, claim).await,
            other => Ok(other),
        }
    }
}

/// Finds the resource and evicts whoever stands first in its list.
#[derive(Debug, Default)]
pub(super) struct EvictsTheFirst;

#[async_trait]
impl Lie for EvictsTheFirst {
    async fn evict(&self, truth: &Memory, id: &HoldId) -> Result<Released> {
        let holders = truth.inspect(id.resource()).await?.holders;
        truth.evict(holders.first().map_or(id, |h| &h.id)).await
    }
}

/// Does not wait to be heeded.
#[derive(Debug, Default)]
pub(super) struct AsksByForce;

#[async_trait]
impl Lie for AsksByForce {
    async fn request_release(&self, truth: &Memory, resource: &Resource) -> Result<usize> {
        let asked = truth.request_release(resource).await?;
        for holder in truth.inspect(resource).await?.holders {
            truth.evict(&holder.id).await?;
        }
        Ok(asked)
    }
}

/// Asks whoever stands in the resource's list, in line or not.
#[derive(Debug, Default)]
pub(super) struct CountsThoseWhoWait;

#[async_trait]
impl Lie for CountsThoseWhoWait {
    async fn request_release(&self, truth: &Memory, resource: &Resource) -> Result<usize> {
        let asked = truth.request_release(resource).await?;
        Ok(asked + truth.inspect(resource).await?.waiters.len())
    }
}

/// Rings for everybody at each release.
#[derive(Debug, Default)]
pub(super) struct WakesTheHerd(Notify);

#[async_trait]
impl Lie for WakesTheHerd {
    async fn changed(&self, ticket: &mut Box<dyn Ticket>) {
        tokio::select! {
            () = ticket.changed() => {}
            () = self.0.notified() => {}
        }
    }

    async fn release(&self, truth: &Memory, id: &HoldId) -> Result<Released> {
        let released = honest_release(truth, id).await;
        self.0.notify_waiters();
        released
    }
}
