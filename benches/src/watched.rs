//! A backend that notes how it is renewed.

use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use lockkit::{
    Backend, Claim, Converted, CountDown, Descriptor, HoldId, LockName, Mode, Notices, Released,
    Renewal, Resource, Result, Snapshot, Ticket, Together,
};

/// One call of `renew`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beat {
    pub(crate) ids: usize,
    pub(crate) took: Duration,
}

/// The beats so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Beats(Arc<Mutex<Vec<Beat>>>);

impl Beats {
    /// Takes what was noted since the last call.
    pub(crate) fn take(&self) -> Vec<Beat> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, beat: Beat) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(beat);
    }
}

/// Passes everything on and notes each beat.
#[derive(Debug)]
pub(crate) struct Watched<B> {
    pub(crate) backend: B,
    pub(crate) beats: Beats,
}

#[async_trait]
impl<B: Backend> Backend for Watched<B> {
    fn descriptor(&self) -> &Descriptor {
        self.backend.descriptor()
    }

    fn attach(&self, notices: Notices) {
        self.backend.attach(notices);
    }

    fn enter(&self, claim: Claim) -> Result<Box<dyn Ticket>> {
        self.backend.enter(claim)
    }

    async fn renew(&self, ids: &[HoldId]) -> Vec<Renewal> {
        let started = Instant::now();
        let renewals = self.backend.renew(ids).await;
        self.beats.note(Beat {
            ids: ids.len(),
            took: started.elapsed(),
        });
        renewals
    }

    async fn release(&self, ids: &[HoldId]) -> Vec<Result<Released>> {
        self.backend.release(ids).await
    }

    async fn extend(&self, id: &HoldId, ttl: Duration) -> Renewal {
        self.backend.extend(id, ttl).await
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
        self.backend.attempt_all(claims).await
    }

    async fn convert(&self, id: &HoldId, mode: Mode) -> Result<Converted> {
        self.backend.convert(id, mode).await
    }

    async fn request_release(&self, resource: &Resource) -> Result<usize> {
        self.backend.request_release(resource).await
    }

    async fn set_size(&self, resource: &Resource, size: u32) -> Result<bool> {
        self.backend.set_size(resource, size).await
    }

    async fn set_latch(&self, resource: &Resource, count: u32) -> Result<bool> {
        self.backend.set_latch(resource, count).await
    }

    async fn count_down(&self, resource: &Resource, participant: &LockName) -> Result<CountDown> {
        self.backend.count_down(resource, participant).await
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
