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
    Mode, Notices, Released, Renewal, Resource, Result, Snapshot, Ticket, Together,
};

use crate::config::Config;
use crate::connect::connect;
use crate::descriptor::{DESCRIPTOR, DRIVER};
use crate::mode::check;
use crate::shared::Shared;
use crate::ticket::RedisTicket;
use crate::transport::Lane;
use crate::unanswered::Unanswered;

/// Locks on a Redis server. See the [crate] for what it promises.
pub struct Redis {
    shared: Arc<Shared>,
    descriptor: Descriptor,
    closed: AtomicBool,
    unanswered: Unanswered,
}

impl Redis {
    /// Connects to the server of a URL.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidConfig`] for a bad URL, a server that may throw locks away, or a call
    /// outside a tokio runtime; [`ErrorKind::PermissionDenied`] for a login or a right that the server
    /// refuses; [`ErrorKind::Unsupported`] for a server that is too old; [`ErrorKind::Unavailable`]
    /// if it cannot be reached, or is a replica.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes what was opened.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn doc() -> lockkit_core::Result<()> {
    /// use lockkit_redis::Redis;
    ///
    /// let backend = Redis::connect("redis://127.0.0.1:6379?timeout=500ms").await?;
    /// # Ok(()) }
    /// ```
    pub async fn connect(url: &str) -> Result<Self> {
        let config = Config::parse(url)?;
        if tokio::runtime::Handle::try_current().is_err() {
            let message = "there is no tokio runtime; call this inside one";
            return Err(Error::new(ErrorKind::InvalidConfig, message).on(DRIVER));
        }
        // Boxed, because what it takes would make every caller's future large.
        let (shared, descriptor) = Box::pin(connect(config)).await?;
        Ok(Self {
            shared: Arc::new(shared),
            descriptor,
            closed: AtomicBool::new(false),
            unanswered: Unanswered::default(),
        })
    }

    /// What this backend promises, whatever the settings of the server are.
    #[must_use]
    pub fn descriptor() -> &'static Descriptor {
        &DESCRIPTOR
    }

    fn check(&self, claim: &Claim) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            let message = "this backend was closed; connect again";
            return Err(Error::new(ErrorKind::Closed, message).on(DRIVER));
        }
        DESCRIPTOR.require(claim.resource.primitive())?;
        check(claim)?;
        DESCRIPTOR.check_ttl(claim.ttl)
    }
}

impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redis").finish_non_exhaustive()
    }
}

#[async_trait]
impl Backend for Redis {
    fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    fn attach(&self, notices: Notices) {
        self.shared.inbox.attach(notices);
    }

    fn enter(&self, claim: Claim) -> Result<Box<dyn Ticket>> {
        self.check(&claim)?;
        let shared = Arc::clone(&self.shared);
        Ok(Box::new(RedisTicket::new(shared, claim)))
    }

    async fn renew(&self, ids: &[HoldId]) -> Vec<Renewal> {
        self.shared.renew(Lane::Renewals, ids).await
    }

    async fn release(&self, ids: &[HoldId]) -> Vec<Result<Released>> {
        if let [id] = ids {
            return vec![self.shared.release(id, false).await];
        }
        join_all(ids.iter().map(|id| self.shared.release(id, false))).await
    }

    async fn extend(&self, id: &HoldId, ttl: Duration) -> Renewal {
        let sent_at = Clock::Boot.now();
        match self.shared.extend(id, ttl).await {
            Ok(Some(ttl)) => Renewal::Renewed { sent_at, ttl },
            Ok(None) => Renewal::Gone,
            Err(error) => Renewal::Unknown(error),
        }
    }

    async fn inspect(&self, resource: &Resource) -> Result<Snapshot> {
        self.shared.inspect(resource).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Snapshot>> {
        self.shared.list(prefix).await
    }

    async fn evict(&self, id: &HoldId) -> Result<Released> {
        self.shared.release(id, true).await
    }

    fn session_file(&self, _: &HoldId) -> Option<File> {
        None
    }

    async fn attempt_all(&self, claims: &[Claim]) -> Result<Together> {
        for claim in claims {
            self.check(claim)?;
        }
        let together = self.shared.attempt_all(claims).await?;
        if matches!(together, Together::Held(_)) {
            let ids: Vec<HoldId> = claims.iter().map(Claim::id).collect();
            self.shared.replicate(&ids).await?;
        }
        Ok(together)
    }

    async fn convert(&self, id: &HoldId, mode: Mode) -> Result<Converted> {
        let converted = self.shared.convert(id, mode).await?;
        if matches!((converted, mode), (Converted::Done(_), Mode::Exclusive)) {
            self.shared.replicate(std::slice::from_ref(id)).await?;
        }
        Ok(converted)
    }

    async fn request_release(&self, resource: &Resource) -> Result<usize> {
        self.shared.request_release(resource).await
    }

    async fn set_size(&self, resource: &Resource, size: u32) -> Result<bool> {
        self.shared.set_size(resource, size).await
    }

    async fn set_latch(&self, resource: &Resource, count: u32) -> Result<bool> {
        let this = self.unanswered.begin(resource, count);
        let is_set = self.shared.set_latch(resource, count, this.id).await?;
        this.answered();
        Ok(is_set)
    }

    async fn count_down(&self, resource: &Resource, participant: &LockName) -> Result<CountDown> {
        self.shared.count_down(resource, participant).await
    }

    async fn probe(&self) -> Result<Vec<(&'static str, String)>> {
        self.shared.probe().await
    }

    async fn close(&self) -> Result<()> {
        if !self.closed.swap(true, Ordering::AcqRel) {
            self.shared.close().await;
        }
        Ok(())
    }
}
