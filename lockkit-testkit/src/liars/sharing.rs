//! Lies about readers and writers.

use async_trait::async_trait;
use lockkit_core::{
    Attempt, Backend, Claim, Converted, Fence, Grant, HoldId, Label, Memory, Mode, Order,
    Primitive, Result, Ticket,
};

use super::lie::{Lie, honest_release};

/// Takes a writer for one more reader.
#[derive(Debug, Default)]
pub(super) struct WritersShare;

#[async_trait]
impl Lie for WritersShare {
    fn claim(&self, claim: Claim) -> Claim {
        let is_writer =
            claim.resource.primitive() == Primitive::ReadWrite && claim.mode == Mode::Exclusive;
        let mode = if is_writer { Mode::Shared } else { claim.mode };
        Claim { mode, ..claim }
    }
}

/// Looks at who holds and not at who waits.
#[derive(Debug, Default)]
pub(super) struct ReadersPass;

#[async_trait]
impl Lie for ReadersPass {
    fn claim(&self, claim: Claim) -> Claim {
        let order = match claim.mode {
            Mode::Shared => Order::Barging,
            _ => claim.order,
        };
        Claim { order, ..claim }
    }
}

/// Does not keep the fence of the last write.
#[derive(Debug, Default)]
pub(super) struct ReadsWithoutFence;

#[async_trait]
impl Lie for ReadsWithoutFence {
    async fn attempt(
        &self,
        _: &Memory,
        claim: &Claim,
        ticket: &mut Box<dyn Ticket>,
    ) -> Result<Attempt> {
        let outcome = ticket.attempt().await?;
        Ok(match outcome {
            Attempt::Held(grant) if claim.mode == Mode::Shared => Attempt::Held(Grant {
                fence: Fence::new(0),
                ..grant
            }),
            other => other,
        })
    }
}

/// Makes a reader a writer without looking for others.
#[derive(Debug, Default)]
pub(super) struct UpgradesAnyone;

#[async_trait]
impl Lie for UpgradesAnyone {
    async fn convert(&self, truth: &Memory, id: &HoldId, mode: Mode) -> Result<Converted> {
        let outcome = truth.convert(id, mode).await?;
        if outcome != Converted::Busy {
            return Ok(outcome);
        }
        let last = truth.inspect(id.resource()).await?.fence;
        Ok(Converted::Done(Fence::new(last.map_or(1, Fence::get) + 1)))
    }
}

/// Releases the writer and takes the lock again as a reader.
#[derive(Debug, Default)]
pub(super) struct DowngradesInTwoSteps;

#[async_trait]
impl Lie for DowngradesInTwoSteps {
    async fn convert(&self, truth: &Memory, id: &HoldId, mode: Mode) -> Result<Converted> {
        if mode != Mode::Shared {
            return truth.convert(id, mode).await;
        }
        let before = truth.inspect(id.resource()).await?.fence;
        honest_release(truth, id).await?;
        let again = Claim {
            resource: id.resource().clone(),
            mode,
            order: Order::Fair,
            ttl: std::time::Duration::from_secs(30),
            attempt: id.attempt(),
            label: Label::process(),
            wait: false,
        };
        Ok(match truth.enter(again)?.attempt().await? {
            Attempt::Held(grant) => Converted::Done(grant.fence),
            Attempt::Busy { .. } => Converted::Done(before.unwrap_or(Fence::new(0))),
        })
    }
}
