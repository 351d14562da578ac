//! The in-memory backend with a hook for every lie.

use std::fmt::Debug;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lockkit_core::{
    Attempt, Backend, Claim, Clock, Converted, CountDown, Descriptor, Fence, Grant, HoldId,
    LockName, Memory, Mode, Notices, Released, Renewal, Resource, Result, Snapshot, Ticket,
    Together,
};

use crate::{Harness, InMemory, Time};

/// What a lie may change; each default is the truth. One lie is shared by all clients of a
/// service.
#[async_trait]
pub(super) trait Lie: Debug + Send + Sync + 'static {
    /// Under which resource the service really keeps it.
    fn place(&self, resource: &Resource) -> Resource {
        resource.clone()
    }

    fn claim(&self, claim: Claim) -> Claim {
        claim
    }

    fn notices(&self, notices: Notices) -> Notices {
        notices
    }

    async fn attempt(
        &self,
        _truth: &Memory,
        _claim: &Claim,
        ticket: &mut Box<dyn Ticket>,
    ) -> Result<Attempt> {
        ticket.attempt().await
    }

    async fn changed(&self, ticket: &mut Box<dyn Ticket>) {
        ticket.changed().await;
    }

    async fn renew(&self, truth: &Memory, ids: &[HoldId]) -> Vec<Renewal> {
        truth.renew(ids).await
    }

    async fn release(&self, truth: &Memory, id: &HoldId) -> Result<Released> {
        honest_release(truth, id).await
    }

    async fn extend(&self, truth: &Memory, id: &HoldId, ttl: Duration) -> Renewal {
        truth.extend(id, ttl).await
    }

    async fn evict(&self, truth: &Memory, id: &HoldId) -> Result<Released> {
        truth.evict(id).await
    }

    async fn attempt_all(&self, truth: &Memory, claims: &[Claim]) -> Result<Together> {
        truth.attempt_all(claims).await
    }

    async fn convert(&self, truth: &Memory, id: &HoldId, mode: Mode) -> Result<Converted> {
        truth.convert(id, mode).await
    }

    async fn request_release(&self, truth: &Memory, resource: &Resource) -> Result<usize> {
        truth.request_release(resource).await
    }

    async fn set_size(&self, truth: &Memory, resource: &Resource, size: u32) -> Result<bool> {
        truth.set_size(resource, size).await
    }

    async fn set_latch(&self, truth: &Memory, resource: &Resource, count: u32) -> Result<bool> {
        truth.set_latch(resource, count).await
    }

    async fn count_down(
        &self,
        truth: &Memory,
        resource: &Resource,
        participant: &LockName,
    ) -> Result<CountDown> {
        truth.count_down(resource, participant).await
    }
}

pub(super) async fn honest_release(truth: &Memory, id: &HoldId) -> Result<Released> {
    let answers = truth.release(std::slice::from_ref(id)).await;
    answers.into_iter().next().unwrap_or(Ok(Released::NotHeld))
}

/// A grant that the service knows nothing of.
pub(super) async fn forged(truth: &Memory, claim: &Claim) -> Result<Attempt> {
    let last = truth.inspect(&claim.resource).await?.fence;
    Ok(Attempt::Held(Grant {
        fence: Fence::new(last.map_or(0, Fence::get) + 1),
        sent_at: Clock::Tokio.now(),
        ttl: claim.ttl,
        segment: claim.mode.segment(),
    }))
}

/// The harness of a liar.
#[derive(Debug)]
pub struct Lying {
    service: InMemory,
    lie: Arc<dyn Lie>,
}

impl Lying {
    pub(super) fn new(lie: Arc<dyn Lie>) -> Self {
        Self {
            service: InMemory::new(Time::Virtual),
            lie,
        }
    }
}

#[async_trait]
impl Harness for Lying {
    fn descriptor(&self) -> &Descriptor {
        Memory::descriptor()
    }

    async fn backend(&self) -> Result<Box<dyn Backend>> {
        let truth = Arc::new(self.service.memory());
        Ok(Box::new(Client {
            truth,
            lie: Arc::clone(&self.lie),
        }))
    }

    async fn census(&self) -> Result<Vec<String>> {
        self.service.census().await
    }

    async fn expire(&self, resource: &Resource) -> Result<()> {
        self.service.expire(&self.lie.place(resource)).await
    }

    fn time(&self) -> Time {
        Time::Virtual
    }
}

#[derive(Debug)]
struct Client {
    truth: Arc<Memory>,
    lie: Arc<dyn Lie>,
}

impl Client {
    fn place(&self, id: &HoldId) -> HoldId {
        HoldId::new(self.lie.place(id.resource()), id.attempt())
    }
}

#[async_trait]
impl Backend for Client {
    fn descriptor(&self) -> &Descriptor {
        Memory::descriptor()
    }

    fn attach(&self, notices: Notices) {
        self.truth.attach(self.lie.notices(notices));
    }

    fn enter(&self, claim: Claim) -> Result<Box<dyn Ticket>> {
        let claim = Claim {
            resource: self.lie.place(&claim.resource),
            ..claim
        };
        let claim = self.lie.claim(claim);
        let ticket = self.truth.enter(claim.clone())?;
        let (truth, lie) = (Arc::clone(&self.truth), Arc::clone(&self.lie));
        Ok(Box::new(LyingTicket {
            truth,
            lie,
            claim,
            ticket,
        }))
    }

    async fn renew(&self, ids: &[HoldId]) -> Vec<Renewal> {
        let ids: Vec<HoldId> = ids.iter().map(|id| self.place(id)).collect();
        self.lie.renew(&self.truth, &ids).await
    }

    async fn release(&self, ids: &[HoldId]) -> Vec<Result<Released>> {
        let mut answers = Vec::with_capacity(ids.len());
        for id in ids {
            answers.push(self.lie.release(&self.truth, &self.place(id)).await);
        }
        answers
    }

    async fn extend(&self, id: &HoldId, ttl: Duration) -> Renewal {
        self.lie.extend(&self.truth, &self.place(id), ttl).await
    }

    async fn inspect(&self, resource: &Resource) -> Result<Snapshot> {
        self.truth.inspect(&self.lie.place(resource)).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Snapshot>> {
        self.truth.list(prefix).await
    }

    async fn evict(&self, id: &HoldId) -> Result<Released> {
        self.lie.evict(&self.truth, &self.place(id)).await
    }

    async fn attempt_all(&self, claims: &[Claim]) -> Result<Together> {
        let placed = claims.iter().cloned().map(|claim| Claim {
            resource: self.lie.place(&claim.resource),
            ..claim
        });
        let claims: Vec<Claim> = placed.map(|claim| self.lie.claim(claim)).collect();
        self.lie.attempt_all(&self.truth, &claims).await
    }

    async fn convert(&self, id: &HoldId, mode: Mode) -> Result<Converted> {
        self.lie.convert(&self.truth, &self.place(id), mode).await
    }

    async fn request_release(&self, resource: &Resource) -> Result<usize> {
        let resource = self.lie.place(resource);
        self.lie.request_release(&self.truth, &resource).await
    }

    async fn set_size(&self, resource: &Resource, size: u32) -> Result<bool> {
        let resource = self.lie.place(resource);
        self.lie.set_size(&self.truth, &resource, size).await
    }

    async fn set_latch(&self, resource: &Resource, count: u32) -> Result<bool> {
        let resource = self.lie.place(resource);
        self.lie.set_latch(&self.truth, &resource, count).await
    }

    async fn count_down(&self, resource: &Resource, participant: &LockName) -> Result<CountDown> {
        let resource = self.lie.place(resource);
        self.lie
            .count_down(&self.truth, &resource, participant)
            .await
    }

    fn session_file(&self, id: &HoldId) -> Option<File> {
        self.truth.session_file(id)
    }

    async fn probe(&self) -> Result<Vec<(&'static str, String)>> {
        self.truth.probe().await
    }

    async fn close(&self) -> Result<()> {
        self.truth.close().await
    }
}

#[derive(Debug)]
struct LyingTicket {
    truth: Arc<Memory>,
    lie: Arc<dyn Lie>,
    claim: Claim,
    ticket: Box<dyn Ticket>,
}

#[async_trait]
impl Ticket for LyingTicket {
    async fn attempt(&mut self) -> Result<Attempt> {
        self.lie
            .attempt(&self.truth, &self.claim, &mut self.ticket)
            .await
    }

    async fn changed(&mut self) {
        self.lie.changed(&mut self.ticket).await;
    }
}
