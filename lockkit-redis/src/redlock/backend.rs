//! The backend, seen from core.

use std::fmt;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use lockkit_core::{
    Backend, Claim, Clock, Converted, CountDown, Descriptor, Error, ErrorKind, HoldId, LockName,
    Mode, Notices, Primitive, Released, Renewal, Resource, Result, Snapshot, Ticket,
};
use tokio::time::timeout;

use super::admission::Admission;
use super::connect::connect;
use super::council::Council;
use super::descriptor::{DESCRIPTOR, DRIVER};
use super::ears::Hearing;
use super::ticket::RedlockTicket;
use super::voter::Which;
use crate::transport::Request;

/// What tickets and calls of one backend share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) council: Council,
    pub(crate) admission: Arc<Admission>,
    pub(crate) hearing: Arc<Hearing>,
}

#[doc = include_str!("../docs/redlock.md")]
pub struct Redlock {
    shared: Arc<Shared>,
    descriptor: Descriptor,
    closed: AtomicBool,
}

impl Redlock {
    /// Connects to the servers of a URL, of which a majority must be up.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidConfig`] for a bad URL, an even number of servers or fewer than three, one
    /// named twice or met at two addresses, one that may throw locks away, or a call outside a tokio
    /// runtime; [`ErrorKind::Unavailable`] if no majority can be reached; and, if the first of those
    /// that are missing said so, [`ErrorKind::PermissionDenied`] or [`ErrorKind::Unsupported`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes what was opened.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn doc() -> lockkit_core::Result<()> {
    /// use lockkit_redis::Redlock;
    ///
    /// let backend = Redlock::connect("redlock://10.0.0.1,10.0.0.2,10.0.0.3?timeout=200ms").await?;
    /// # Ok(()) }
    /// ```
    pub async fn connect(url: &str) -> Result<Self> {
        if tokio::runtime::Handle::try_current().is_err() {
            let message = "there is no tokio runtime; call this inside one";
            return Err(Error::new(ErrorKind::InvalidConfig, message).on(DRIVER));
        }
        // Boxed, because what it takes would make every caller's future large.
        let (shared, descriptor) = Box::pin(connect(url)).await?;
        Ok(Self {
            shared: Arc::new(shared),
            descriptor,
            closed: AtomicBool::new(false),
        })
    }

    /// What this backend promises, whatever the settings of the servers are.
    #[must_use]
    pub fn descriptor() -> &'static Descriptor {
        &DESCRIPTOR
    }

    /// The error of what only other primitives have.
    fn lacks(&self, resource: &Resource) -> Error {
        let missing = self.descriptor.require(resource.primitive()).err();
        missing.unwrap_or_else(|| {
            let message = format!("a {} has nothing like it", Primitive::Mutex);
            Error::new(ErrorKind::Unsupported, message).on(DRIVER)
        })
    }
}

impl fmt::Debug for Redlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redlock").finish_non_exhaustive()
    }
}

#[async_trait]
impl Backend for Redlock {
    fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    fn attach(&self, notices: Notices) {
        self.shared.hearing.attach(notices);
    }

    fn enter(&self, claim: Claim) -> Result<Box<dyn Ticket>> {
        if self.closed.load(Ordering::Acquire) {
            let message = "this backend was closed; connect again";
            return Err(Error::new(ErrorKind::Closed, message).on(DRIVER));
        }
        self.descriptor.require(claim.resource.primitive())?;
        self.descriptor.check_ttl(claim.ttl)?;
        let shared = Arc::clone(&self.shared);
        Ok(Box::new(RedlockTicket::new(shared, claim)))
    }

    async fn renew(&self, ids: &[HoldId]) -> Vec<Renewal> {
        let notices = self.shared.hearing.notices();
        let asked = |id: &HoldId| notices.release_requested(id);
        self.shared.council.renew(ids, Clock::Boot, asked).await
    }

    async fn release(&self, ids: &[HoldId]) -> Vec<Result<Released>> {
        let council = &self.shared.council;
        join_all(ids.iter().map(|id| council.release(id, Which::All))).await
    }

    async fn extend(&self, id: &HoldId, ttl: Duration) -> Renewal {
        match self.descriptor.check_ttl(ttl) {
            Ok(()) => self.shared.council.extend(id, ttl, Clock::Boot).await,
            Err(error) => Renewal::Unknown(error),
        }
    }

    async fn inspect(&self, resource: &Resource) -> Result<Snapshot> {
        self.shared.council.inspect(resource).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Snapshot>> {
        self.shared.council.list(prefix).await
    }

    async fn evict(&self, id: &HoldId) -> Result<Released> {
        self.shared.council.release(id, Which::Evicted).await
    }

    fn session_file(&self, _: &HoldId) -> Option<File> {
        None
    }

    async fn convert(&self, id: &HoldId, _: Mode) -> Result<Converted> {
        Err(self.lacks(id.resource()))
    }

    async fn request_release(&self, resource: &Resource) -> Result<usize> {
        self.shared.council.request(resource).await
    }

    async fn set_size(&self, resource: &Resource, _: u32) -> Result<bool> {
        Err(self.lacks(resource))
    }

    async fn set_latch(&self, resource: &Resource, _: u32) -> Result<bool> {
        Err(self.lacks(resource))
    }

    async fn count_down(&self, resource: &Resource, _: &LockName) -> Result<CountDown> {
        Err(self.lacks(resource))
    }

    async fn probe(&self) -> Result<Vec<(&'static str, String)>> {
        self.shared.probe().await
    }

    async fn close(&self) -> Result<()> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let errands = &self.shared.council.errands;
        errands.close();
        // Each ends within its node's time limits; a node that is gone keeps nobody longer.
        let _ = timeout(Duration::from_secs(5), errands.wait()).await;
        for peer in &self.shared.admission.peers {
            if let Some(live) = peer.node.if_up() {
                // A server answers in the order in which it was asked.
                let _ = live.send(&Request::new("PING")).await;
            }
            peer.node.close();
        }
        Ok(())
    }
}
