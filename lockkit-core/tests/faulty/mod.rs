//! A memory backend that misbehaves on demand: it hangs, answers late, loses replies.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "test support; each test file uses its part"
)]

use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use lockkit_core::{
    Attempt, Backend, Claim, Converted, CountDown, Descriptor, Error, ErrorKind, HoldId, LockName,
    Memory, MemoryStore, Mode, Notices, Released, Renewal, Resource, Result, Snapshot, Ticket,
    Together,
};

/// What goes wrong, and what was called how often.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// Every request takes this long before it reaches the store, and as long to come back.
    delay: Mutex<Duration>,
    /// So many attempts take effect, but the reply is lost.
    pub(crate) lost_attempts: AtomicUsize,
    /// So many releases take effect, but the reply is lost.
    pub(crate) lost_releases: AtomicUsize,
    /// Renewals answer "unknown".
    pub(crate) renewals_unknown: AtomicBool,
    /// Nothing answers any more.
    pub(crate) hang: AtomicBool,
    pub(crate) attempts: AtomicUsize,
    pub(crate) releases: AtomicUsize,
    pub(crate) renew_calls: AtomicUsize,
    pub(crate) renewed_ids: AtomicUsize,
    notices: OnceLock<Notices>,
}

impl Faults {
    pub(crate) fn delay(&self, each_way: Duration) {
        *self.delay.lock().unwrap() = each_way;
    }

    pub(crate) fn notices(&self) -> &Notices {
        self.notices.get().unwrap()
    }

    async fn way(&self) {
        let delay = *self.delay.lock().unwrap();
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        if self.hang.load(SeqCst) {
            std::future::pending::<()>().await;
        }
    }
}

fn take_one(count: &AtomicUsize) -> bool {
    count
        .fetch_update(SeqCst, SeqCst, |n| n.checked_sub(1))
        .is_ok()
}

fn lost_reply() -> Error {
    Error::new(ErrorKind::Unavailable, "the reply was lost")
}

#[derive(Debug)]
pub(crate) struct Faulty {
    inner: Memory,
    faults: Arc<Faults>,
}

/// A misbehaving client of `store`, and the handle that makes it so.
pub(crate) fn faulty(store: &MemoryStore) -> (Faulty, Arc<Faults>) {
    let faults = Arc::new(Faults::default());
    (
        Faulty {
            inner: store.backend(),
            faults: Arc::clone(&faults),
        },
        faults,
    )
}

#[derive(Debug)]
struct FaultyTicket {
    inner: Box<dyn Ticket>,
    faults: Arc<Faults>,
}

#[async_trait]
impl Ticket for FaultyTicket {
    async fn attempt(&mut self) -> Result<Attempt> {
        self.faults.attempts.fetch_add(1, SeqCst);
        self.faults.way().await;
        let outcome = self.inner.attempt().await;
        self.faults.way().await;
        if take_one(&self.faults.lost_attempts) {
            Err(lost_reply())
        } else {
            outcome
        }
    }

    async fn changed(&mut self) {
        self.inner.changed().await;
    }
}

#[async_trait]
impl Backend for Faulty {
    fn descriptor(&self) -> &Descriptor {
        self.inner.descriptor()
    }

    fn attach(&self, notices: Notices) {
        let _ = self.faults.notices.set(notices.clone());
        self.inner.attach(notices);
    }

    fn enter(&self, claim: Claim) -> Result<Box<dyn Ticket>> {
        let inner = self.inner.enter(claim)?;
        Ok(Box::new(FaultyTicket {
            inner,
            faults: Arc::clone(&self.faults),
        }))
    }

    async fn renew(&self, ids: &[HoldId]) -> Vec<Renewal> {
        self.faults.renew_calls.fetch_add(1, SeqCst);
        self.faults.renewed_ids.fetch_add(ids.len(), SeqCst);
        self.faults.way().await;
        if self.faults.renewals_unknown.load(SeqCst) {
            return ids.iter().map(|_| Renewal::Unknown(lost_reply())).collect();
        }
        self.inner.renew(ids).await
    }

    async fn release(&self, ids: &[HoldId]) -> Vec<Result<Released>> {
        self.faults.releases.fetch_add(ids.len(), SeqCst);
        self.faults.way().await;
        let answers = self.inner.release(ids).await;
        self.faults.way().await;
        let lost = |answer| {
            if take_one(&self.faults.lost_releases) {
                Err(lost_reply())
            } else {
                answer
            }
        };
        answers.into_iter().map(lost).collect()
    }

    async fn extend(&self, id: &HoldId, ttl: Duration) -> Renewal {
        self.faults.way().await;
        self.inner.extend(id, ttl).await
    }

    async fn inspect(&self, resource: &Resource) -> Result<Snapshot> {
        self.faults.way().await;
        self.inner.inspect(resource).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Snapshot>> {
        self.faults.way().await;
        self.inner.list(prefix).await
    }

    async fn evict(&self, id: &HoldId) -> Result<Released> {
        self.faults.way().await;
        self.inner.evict(id).await
    }

    async fn attempt_all(&self, claims: &[Claim]) -> Result<Together> {
        self.faults.way().await;
        let outcome = self.inner.attempt_all(claims).await;
        self.faults.way().await;
        outcome
    }

    async fn convert(&self, id: &HoldId, mode: Mode) -> Result<Converted> {
        self.faults.way().await;
        let outcome = self.inner.convert(id, mode).await;
        self.faults.way().await;
        outcome
    }

    async fn request_release(&self, resource: &Resource) -> Result<usize> {
        self.faults.way().await;
        let outcome = self.inner.request_release(resource).await;
        self.faults.way().await;
        outcome
    }

    async fn set_size(&self, resource: &Resource, size: u32) -> Result<bool> {
        self.faults.way().await;
        let outcome = self.inner.set_size(resource, size).await;
        self.faults.way().await;
        outcome
    }

    async fn set_latch(&self, resource: &Resource, count: u32) -> Result<bool> {
        self.faults.way().await;
        let outcome = self.inner.set_latch(resource, count).await;
        self.faults.way().await;
        outcome
    }

    async fn count_down(&self, resource: &Resource, participant: &LockName) -> Result<CountDown> {
        self.faults.way().await;
        let outcome = self.inner.count_down(resource, participant).await;
        self.faults.way().await;
        outcome
    }

    fn session_file(&self, id: &HoldId) -> Option<File> {
        self.inner.session_file(id)
    }

    async fn probe(&self) -> Result<Vec<(&'static str, String)>> {
        self.faults.way().await;
        self.inner.probe().await
    }

    async fn close(&self) -> Result<()> {
        self.inner.close().await
    }
}

/// What the store still knows, as a client that never misbehaves sees it.
pub(crate) async fn census(store: &MemoryStore) -> usize {
    let all = store.backend().list("").await.unwrap();
    all.iter().map(|s| s.holders.len() + s.waiters.len()).sum()
}
