//! Lies about latches.

use async_trait::async_trait;
use lockkit_core::{
    Attempt, AttemptId, Backend, Claim, CountDown, HoldId, LockName, Memory, Primitive, Resource,
    Result, Ticket,
};
use tokio::sync::Mutex;

use super::lie::{Lie, forged, honest_release};

/// Clears everything when it is set anew, whoever stood in line included.
#[derive(Debug, Default)]
pub(super) struct ForgetsWhoWaited {
    stood: Mutex<Vec<HoldId>>,
}

#[async_trait]
impl Lie for ForgetsWhoWaited {
    async fn attempt(
        &self,
        _: &Memory,
        claim: &Claim,
        ticket: &mut Box<dyn Ticket>,
    ) -> Result<Attempt> {
        let mut stood = self.stood.lock().await;
        stood.push(claim.id());
        ticket.attempt().await
    }

    async fn set_latch(&self, truth: &Memory, resource: &Resource, count: u32) -> Result<bool> {
        let done = truth.set_latch(resource, count).await?;
        if done {
            for id in self.stood.lock().await.drain(..) {
                honest_release(truth, &id).await?;
            }
        }
        Ok(done)
    }
}

/// Tells those who are there when it opens, and nobody later.
#[derive(Debug, Default)]
pub(super) struct MissesLatecomers;

#[async_trait]
impl Lie for MissesLatecomers {
    async fn attempt(
        &self,
        truth: &Memory,
        claim: &Claim,
        ticket: &mut Box<dyn Ticket>,
    ) -> Result<Attempt> {
        let snapshot = truth.inspect(&claim.resource).await?;
        let is_open = snapshot.latch.is_some_and(|latch| latch.is_open());
        if is_open && snapshot.waiters.iter().all(|w| w.id != claim.id()) {
            return Ok(Attempt::Busy {
                recheck_after: None,
            });
        }
        ticket.attempt().await
    }
}

/// Takes the absence of a count for a count of zero.
#[derive(Debug, Default)]
pub(super) struct OpenUnlessSet;

#[async_trait]
impl Lie for OpenUnlessSet {
    async fn attempt(
        &self,
        truth: &Memory,
        claim: &Claim,
        ticket: &mut Box<dyn Ticket>,
    ) -> Result<Attempt> {
        let is_latch = claim.resource.primitive() == Primitive::Latch;
        if is_latch && truth.inspect(&claim.resource).await?.latch.is_none() {
            return forged(truth, claim).await;
        }
        ticket.attempt().await
    }
}

/// Counts calls instead of participants.
#[derive(Debug, Default)]
pub(super) struct CountsCalls;

#[async_trait]
impl Lie for CountsCalls {
    async fn count_down(
        &self,
        truth: &Memory,
        resource: &Resource,
        participant: &LockName,
    ) -> Result<CountDown> {
        let anybody = LockName::new(AttemptId::random().to_string());
        let anybody = anybody.unwrap_or_else(|_| participant.clone());
        truth.count_down(resource, &anybody).await
    }
}
