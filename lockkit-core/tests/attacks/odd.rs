//! A memory backend with one oddity, and what every attack uses.

pub(crate) use std::fs::File;
pub(crate) use std::future::{Future, pending};
pub(crate) use std::pin::pin;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
pub(crate) use std::sync::{Arc, Mutex, OnceLock, mpsc};
pub(crate) use std::task::{Context, Poll, Wake, Waker};
pub(crate) use std::time::Duration;

pub(crate) use crate::faulty::{census, faulty};
pub(crate) use async_trait::async_trait;
pub(crate) use lockkit_core::{
    Attempt, AttemptId, Backend, Claim, Clock, Converted, CountDown, Descriptor, Error, ErrorKind,
    Grant, Guard, HoldId, Instant, Label, LockName, Locker, LockerOptions, LossReason, Memory,
    MemoryStore, Mode, MultiLock, Notices, Order, Owner, Primitive, Released, Renewal, Resource,
    Result, Snapshot, Ticket, Together, Unlocked, Upgraded,
};
pub(crate) use tokio::time::{Instant as TokioInstant, sleep, timeout};

pub(crate) const TTL: Duration = Duration::from_secs(10);

pub(crate) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// What a backend does otherwise than the one in memory.
#[async_trait]
pub(crate) trait Oddity: Send + Sync + 'static {
    fn entered(&self) {}

    /// What it promises, given what the one in memory does.
    fn promises(&self, memory: Descriptor) -> Descriptor {
        memory
    }

    async fn attempt(&self, inner: &mut dyn Ticket) -> Result<Attempt> {
        inner.attempt().await
    }

    async fn renew(&self, inner: &Memory, ids: &[HoldId]) -> Vec<Renewal> {
        inner.renew(ids).await
    }

    async fn release(&self, inner: &Memory, ids: &[HoldId]) -> Vec<Result<Released>> {
        inner.release(ids).await
    }

    async fn extend(&self, inner: &Memory, id: &HoldId, ttl: Duration) -> Renewal {
        inner.extend(id, ttl).await
    }

    async fn attempt_all(&self, inner: &Memory, claims: &[Claim]) -> Result<Together> {
        inner.attempt_all(claims).await
    }

    async fn convert(&self, inner: &Memory, id: &HoldId, mode: Mode) -> Result<Converted> {
        inner.convert(id, mode).await
    }

    /// Core has asked for the descriptor.
    fn described(&self) {}
}

pub(crate) struct Odd<O> {
    inner: Memory,
    descriptor: Descriptor,
    oddity: Arc<O>,
}

impl<O> std::fmt::Debug for Odd<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Odd")
    }
}

pub(crate) fn odd<O: Oddity>(store: &MemoryStore, oddity: O) -> (Odd<O>, Arc<O>) {
    let oddity = Arc::new(oddity);
    let backend = Odd {
        inner: store.backend(),
        descriptor: oddity.promises(Memory::descriptor().clone()),
        oddity: Arc::clone(&oddity),
    };
    (backend, oddity)
}

pub(crate) struct OddTicket<O> {
    inner: Box<dyn Ticket>,
    oddity: Arc<O>,
}

impl<O> std::fmt::Debug for OddTicket<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OddTicket")
    }
}

#[async_trait]
impl<O: Oddity> Ticket for OddTicket<O> {
    async fn attempt(&mut self) -> Result<Attempt> {
        self.oddity.attempt(&mut *self.inner).await
    }

    async fn changed(&mut self) {
        self.inner.changed().await;
    }
}

#[async_trait]
impl<O: Oddity> Backend for Odd<O> {
    fn descriptor(&self) -> &Descriptor {
        self.oddity.described();
        &self.descriptor
    }

    fn attach(&self, notices: Notices) {
        self.inner.attach(notices);
    }

    fn enter(&self, claim: Claim) -> Result<Box<dyn Ticket>> {
        let inner = self.inner.enter(claim)?;
        self.oddity.entered();
        let oddity = Arc::clone(&self.oddity);
        Ok(Box::new(OddTicket { inner, oddity }))
    }

    async fn renew(&self, ids: &[HoldId]) -> Vec<Renewal> {
        self.oddity.renew(&self.inner, ids).await
    }

    async fn release(&self, ids: &[HoldId]) -> Vec<Result<Released>> {
        self.oddity.release(&self.inner, ids).await
    }

    async fn extend(&self, id: &HoldId, ttl: Duration) -> Renewal {
        self.oddity.extend(&self.inner, id, ttl).await
    }

    async fn inspect(&self, resource: &Resource) -> Result<Snapshot> {
        self.inner.inspect(resource).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Snapshot>> {
        self.inner.list(prefix).await
    }

    async fn evict(&self, id: &HoldId) -> Result<Released> {
        self.inner.evict(id).await
    }

    async fn attempt_all(&self, claims: &[Claim]) -> Result<Together> {
        self.oddity.attempt_all(&self.inner, claims).await
    }

    async fn convert(&self, id: &HoldId, mode: Mode) -> Result<Converted> {
        self.oddity.convert(&self.inner, id, mode).await
    }

    async fn request_release(&self, resource: &Resource) -> Result<usize> {
        self.inner.request_release(resource).await
    }

    async fn set_size(&self, resource: &Resource, size: u32) -> Result<bool> {
        self.inner.set_size(resource, size).await
    }

    async fn set_latch(&self, resource: &Resource, count: u32) -> Result<bool> {
        self.inner.set_latch(resource, count).await
    }

    async fn count_down(&self, resource: &Resource, participant: &LockName) -> Result<CountDown> {
        self.inner.count_down(resource, participant).await
    }

    fn session_file(&self, id: &HoldId) -> Option<File> {
        self.inner.session_file(id)
    }

    async fn probe(&self) -> Result<Vec<(&'static str, String)>> {
        self.inner.probe().await
    }

    async fn close(&self) -> Result<()> {
        self.inner.close().await
    }
}

pub(crate) fn unavailable() -> Error {
    Error::new(ErrorKind::Unavailable, "on purpose")
}

#[derive(Default)]
pub(crate) struct CountedOutage {
    pub(crate) over: AtomicBool,
    pub(crate) calls: AtomicUsize,
}

#[async_trait]
impl Oddity for CountedOutage {
    async fn release(&self, inner: &Memory, ids: &[HoldId]) -> Vec<Result<Released>> {
        if self.over.load(SeqCst) {
            return inner.release(ids).await;
        }
        self.calls.fetch_add(1, SeqCst);
        ids.iter().map(|_| Err(unavailable())).collect()
    }
}
