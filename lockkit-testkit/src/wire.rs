//! The wire between core and a backend, on which requests and replies get lost.

use std::fs::File;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use lockkit_core::{
    Attempt, Backend, Claim, Converted, CountDown, Descriptor, Error, ErrorKind, HoldId, LockName,
    Mode, Notices, Released, Renewal, Resource, Result, Snapshot, Ticket, Together,
};

/// What becomes of the requests of one client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Nothing: they are answered.
    #[default]
    None,
    /// They do not arrive; the client gets an error.
    Cut,
    /// They arrive and take effect, the reply is lost; the client gets an error.
    LostReply,
    /// They arrive and take effect, the reply comes so much later.
    LateReply(Duration),
}

/// A backend with a wire before it that can be broken and counted on. Clones share both.
///
/// Attempts, renewals, releases and extensions are subject to the [`Fault`]; all other requests
/// pass.
#[derive(Clone, Debug)]
pub struct Wire {
    backend: Arc<dyn Backend>,
    line: Arc<Line>,
}

#[derive(Debug, Default)]
struct Line {
    plan: Mutex<Plan>,
    requests: AtomicUsize,
}

/// What becomes of the requests to come.
#[derive(Debug, Default)]
struct Plan {
    /// So many pass first.
    passed: usize,
    fault: Fault,
    /// So many meet the fault.
    faulty: usize,
}

impl Wire {
    pub(crate) fn new(backend: Arc<dyn Backend>) -> Self {
        Self {
            backend,
            line: Arc::default(),
        }
    }

    /// From now on, every request meets this fault.
    pub fn set(&self, fault: Fault) {
        self.line.set(fault, usize::MAX);
    }

    /// The next `requests` meet this fault, those after them none.
    pub fn set_for(&self, fault: Fault, requests: usize) {
        self.line.set(fault, requests);
    }

    /// The next `passed` requests meet no fault, and the one after them this one.
    pub fn set_after(&self, passed: usize, fault: Fault) {
        self.line.set_after(passed, fault, 1);
    }

    /// How many requests were sent so far, those that were lost included.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.line.requests.load(Ordering::SeqCst)
    }
}

impl Line {
    fn set(&self, fault: Fault, requests: usize) {
        self.set_after(0, fault, requests);
    }

    fn set_after(&self, passed: usize, fault: Fault, faulty: usize) {
        *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = Plan {
            passed,
            fault,
            faulty,
        };
    }

    fn next_fault(&self) -> Fault {
        self.requests.fetch_add(1, Ordering::SeqCst);
        let mut plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        if plan.passed > 0 {
            plan.passed -= 1;
            return Fault::None;
        }
        if plan.faulty == 0 {
            return Fault::None;
        }
        plan.faulty -= 1;
        plan.fault
    }

    /// Sends `request` through; `None` if the client is to see an error.
    async fn send<T>(&self, request: impl Future<Output = T> + Send) -> Option<T> {
        match self.next_fault() {
            Fault::None => Some(request.await),
            Fault::Cut => None,
            Fault::LostReply => {
                request.await;
                None
            }
            Fault::LateReply(delay) => {
                let reply = request.await;
                tokio::time::sleep(delay).await;
                Some(reply)
            }
        }
    }
}

fn unreachable() -> Error {
    Error::new(
        ErrorKind::Unavailable,
        "the suite cut the wire; mend it with `Fault::None`",
    )
}

#[async_trait]
impl Backend for Wire {
    fn descriptor(&self) -> &Descriptor {
        self.backend.descriptor()
    }

    fn attach(&self, notices: Notices) {
        self.backend.attach(notices);
    }

    fn enter(&self, claim: Claim) -> Result<Box<dyn Ticket>> {
        let ticket = self.backend.enter(claim)?;
        Ok(Box::new(WiredTicket {
            ticket,
            line: Arc::clone(&self.line),
        }))
    }

    async fn renew(&self, ids: &[HoldId]) -> Vec<Renewal> {
        let reply = self.line.send(self.backend.renew(ids)).await;
        reply.unwrap_or_else(|| {
            ids.iter()
                .map(|_| Renewal::Unknown(unreachable()))
                .collect()
        })
    }

    async fn release(&self, ids: &[HoldId]) -> Vec<Result<Released>> {
        let reply = self.line.send(self.backend.release(ids)).await;
        reply.unwrap_or_else(|| ids.iter().map(|_| Err(unreachable())).collect())
    }

    async fn extend(&self, id: &HoldId, ttl: Duration) -> Renewal {
        let reply = self.line.send(self.backend.extend(id, ttl)).await;
        reply.unwrap_or_else(|| Renewal::Unknown(unreachable()))
    }

    async fn inspect(&self, resource: &Resource) -> Result<Snapshot> {
        self.backend.inspect(resource).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Snapshot>> {
        self.backend.list(prefix).await
    }

    async fn evict(&self, id: &HoldId) -> Result<Released> {
        self.backend.evict(id).await
    }

    async fn attempt_all(&self, claims: &[Claim]) -> Result<Together> {
        let reply = self.line.send(self.backend.attempt_all(claims)).await;
        reply.unwrap_or_else(|| Err(unreachable()))
    }

    async fn convert(&self, id: &HoldId, mode: Mode) -> Result<Converted> {
        let reply = self.line.send(self.backend.convert(id, mode)).await;
        reply.unwrap_or_else(|| Err(unreachable()))
    }

    async fn request_release(&self, resource: &Resource) -> Result<usize> {
        let reply = self.line.send(self.backend.request_release(resource)).await;
        reply.unwrap_or_else(|| Err(unreachable()))
    }

    async fn set_size(&self, resource: &Resource, size: u32) -> Result<bool> {
        let reply = self.line.send(self.backend.set_size(resource, size)).await;
        reply.unwrap_or_else(|| Err(unreachable()))
    }

    async fn set_latch(&self, resource: &Resource, count: u32) -> Result<bool> {
        let reply = self
            .line
            .send(self.backend.set_latch(resource, count))
            .await;
        reply.unwrap_or_else(|| Err(unreachable()))
    }

    async fn count_down(&self, resource: &Resource, participant: &LockName) -> Result<CountDown> {
        let reply = self
            .line
            .send(self.backend.count_down(resource, participant))
            .await;
        reply.unwrap_or_else(|| Err(unreachable()))
    }

    fn session_file(&self, id: &HoldId) -> Option<File> {
        self.backend.session_file(id)
    }

    async fn probe(&self) -> Result<Vec<(&'static str, String)>> {
        self.backend.probe().await
    }

    async fn close(&self) -> Result<()> {
        self.backend.close().await
    }
}

#[derive(Debug)]
struct WiredTicket {
    ticket: Box<dyn Ticket>,
    line: Arc<Line>,
}

#[async_trait]
impl Ticket for WiredTicket {
    async fn attempt(&mut self) -> Result<Attempt> {
        self.line
            .send(self.ticket.attempt())
            .await
            .unwrap_or_else(|| Err(unreachable()))
    }

    async fn changed(&mut self) {
        self.ticket.changed().await;
    }
}
