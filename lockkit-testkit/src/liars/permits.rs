//! Lies about how many permits there are.

use std::time::Duration;

use async_trait::async_trait;
use lockkit_core::{
    Attempt, Backend, Claim, ErrorKind, HoldId, Memory, Mode, Order, Released, Renewal, Resource,
    Result, Ticket,
};

use super::lie::{Lie, honest_release};

/// Counts what is taken and never compares it.
#[derive(Debug, Default)]
pub(super) struct IgnoresTheLimit;

#[async_trait]
impl Lie for IgnoresTheLimit {
    fn claim(&self, claim: Claim) -> Claim {
        let mode = match claim.mode {
            Mode::Permits { .. } => claim.mode.resized(u32::MAX),
            other => other,
        };
        Claim { mode, ..claim }
    }
}

/// Keeps to the first limit it was told and says nothing of another.
#[derive(Debug, Default)]
pub(super) struct AcceptsAnyLimit;

#[async_trait]
impl Lie for AcceptsAnyLimit {
    async fn attempt(
        &self,
        truth: &Memory,
        claim: &Claim,
        ticket: &mut Box<dyn Ticket>,
    ) -> Result<Attempt> {
        let outcome = ticket.attempt().await;
        let size = truth.inspect(&claim.resource).await?.size;
        match (&outcome, size) {
            (Err(error), Some(size)) if error.kind() == ErrorKind::ConfigMismatch => {
                *ticket = truth.enter(Claim {
                    mode: claim.mode.resized(size),
                    ..claim.clone()
                })?;
                ticket.attempt().await
            }
            _ => outcome,
        }
    }
}

/// Serves who wants little first.
#[derive(Debug, Default)]
pub(super) struct SmallOnesPass;

#[async_trait]
impl Lie for SmallOnesPass {
    fn claim(&self, claim: Claim) -> Claim {
        let order = match claim.mode {
            Mode::Permits { count: 1, .. } => Order::Barging,
            _ => claim.order,
        };
        Claim { order, ..claim }
    }
}

/// Adds to a counter at each release, whatever it released.
#[derive(Debug, Default)]
pub(super) struct ReturnsMoreThanTaken;

#[async_trait]
impl Lie for ReturnsMoreThanTaken {
    async fn release(&self, truth: &Memory, id: &HoldId) -> Result<Released> {
        let released = honest_release(truth, id).await?;
        let holders = truth.inspect(id.resource()).await?.holders;
        let permit = |holder: &&lockkit_core::Holder| matches!(holder.mode, Mode::Permits { .. });
        if let Some(other) = holders.iter().find(permit) {
            honest_release(truth, &other.id).await?;
        }
        Ok(released)
    }
}

/// Takes back what a smaller limit does not allow.
#[derive(Debug, Default)]
pub(super) struct ShrinksByForce;

#[async_trait]
impl Lie for ShrinksByForce {
    async fn set_size(&self, truth: &Memory, resource: &Resource, size: u32) -> Result<bool> {
        let done = truth.set_size(resource, size).await?;
        let holders = truth.inspect(resource).await?.holders;
        for holder in holders.iter().skip(size as usize) {
            truth.evict(&holder.id).await?;
        }
        Ok(done)
    }
}

/// Keeps a detached hold for as long as it likes.
#[derive(Debug, Default)]
pub(super) struct DetachesForGood;

#[async_trait]
impl Lie for DetachesForGood {
    async fn extend(&self, truth: &Memory, id: &HoldId, ttl: Duration) -> Renewal {
        match truth.extend(id, Duration::from_secs(3600)).await {
            Renewal::Renewed { sent_at, .. } => Renewal::Renewed { sent_at, ttl },
            other => other,
        }
    }
}
