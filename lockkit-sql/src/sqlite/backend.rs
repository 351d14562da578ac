//! The backend, seen from core.

use std::fmt;
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use lockkit_core::{
    Backend, Claim, Converted, CountDown, Descriptor, Error, ErrorKind, HoldId, LockName, Mode,
    Notices, Released, Renewal, Resource, Result, Snapshot, Ticket, Together,
};

use super::bell::Bell;
use super::config::Config;
use super::connection::Connection;
use super::database::Database;
use super::descriptor::{DESCRIPTOR, DRIVER};
use super::error::{closed, repeat};
use super::files::Files;
use super::kind;
use super::registry::Registry;
use super::release::Cause;
use super::renew;
use super::shared::Shared;
use super::ticket::SqliteTicket;
use super::watch;

/// Releases in one transaction: enough to share its cost, few enough that others get their turn.
const BATCH: usize = 500;

/// Locks in an SQLite file. See [`sqlite`](crate::sqlite) for what it promises.
pub struct Sqlite {
    shared: Arc<Shared>,
    database: Database,
    closed: AtomicBool,
}

impl Sqlite {
    /// Opens the database of a URL, and makes what is missing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidConfig`] for a bad URL, a path that is no place for a database, or a
    /// call outside a tokio runtime; [`ErrorKind::PermissionDenied`] and [`ErrorKind::Full`] as
    /// the file system has it; [`ErrorKind::Corrupt`] for a file that is damaged, no database,
    /// or of a newer version, which is left untouched; [`ErrorKind::Unavailable`] if other
    /// processes keep it busy.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes what was opened. A file that was made stays.
    ///
    /// # Examples
    ///
    /// ```
    /// # async fn doc() -> lockkit_core::Result<()> {
    /// use lockkit_sql::Sqlite;
    ///
    /// let backend = Sqlite::connect("sqlite:/var/lib/orders/locks.db?busy_timeout=2s").await?;
    /// # Ok(()) }
    /// ```
    pub async fn connect(url: &str) -> Result<Self> {
        let config = Config::parse(url)?;
        if tokio::runtime::Handle::try_current().is_err() {
            let message = "there is no tokio runtime; call this inside one";
            return Err(Error::new(ErrorKind::InvalidConfig, message).on(DRIVER));
        }
        let shared = Arc::new(Shared {
            files: Files::new(&config),
            registry: Registry::default(),
            bell: Bell::new(config.options.wakeup),
            notices: OnceLock::new(),
            options: config.options,
        });
        let connection = Connection::open(Arc::clone(&shared)).await?;
        let database = Database::new(Arc::clone(&shared), connection);
        watch::start(&shared, &database);
        Ok(Self {
            shared,
            database,
            closed: AtomicBool::new(false),
        })
    }

    /// What this backend promises.
    #[must_use]
    pub fn descriptor() -> &'static Descriptor {
        &DESCRIPTOR
    }

    async fn remove(&self, ids: &[HoldId], cause: Cause) -> Result<Vec<Released>> {
        let ids = ids.to_vec();
        self.database
            .run(move |c| Box::pin(async move { c.remove(&ids, cause).await }))
            .await
    }

    fn check(&self, claim: &Claim) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(closed());
        }
        kind::check(claim)?;
        DESCRIPTOR.check_ttl(claim.ttl)
    }

    fn forget(&self, id: &HoldId) {
        self.shared.registry.forget(id.attempt());
        self.shared.bell.unfollow(id.attempt());
    }
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.shared.files.database();
        f.debug_struct("Sqlite")
            .field("path", &path)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Backend for Sqlite {
    fn descriptor(&self) -> &Descriptor {
        &DESCRIPTOR
    }

    fn attach(&self, notices: Notices) {
        // Called once; the first sink stays.
        let _ = self.shared.notices.set(notices);
    }

    fn enter(&self, claim: Claim) -> Result<Box<dyn Ticket>> {
        self.check(&claim)?;
        Ok(Box::new(SqliteTicket::new(
            Arc::clone(&self.shared),
            self.database.clone(),
            claim,
        )))
    }

    async fn renew(&self, ids: &[HoldId]) -> Vec<Renewal> {
        let wanted = ids.to_vec();
        let renewed = self
            .database
            .run(move |c| Box::pin(async move { c.renew(&wanted).await }));
        renewed
            .await
            .unwrap_or_else(|error| renew::unknown(ids, &error))
    }

    async fn release(&self, ids: &[HoldId]) -> Vec<Result<Released>> {
        ids.iter().for_each(|id| self.forget(id));
        let mut released = Vec::with_capacity(ids.len());
        for batch in ids.chunks(BATCH) {
            match self.remove(batch, Cause::Release).await {
                Ok(removed) => released.extend(removed.into_iter().map(Ok)),
                Err(error) => released.extend(batch.iter().map(|_| Err(repeat(&error)))),
            }
        }
        released
    }

    async fn extend(&self, id: &HoldId, ttl: Duration) -> Renewal {
        let wanted = id.clone();
        let extended = self
            .database
            .run(move |c| Box::pin(async move { c.extend(&wanted, ttl).await }))
            .await;
        match extended {
            Ok(extended) => {
                // Its session carries it no longer.
                self.forget(id);
                extended
            }
            Err(error) => Renewal::Unknown(error),
        }
    }

    async fn inspect(&self, resource: &Resource) -> Result<Snapshot> {
        let resource = resource.clone();
        self.database
            .run(move |c| Box::pin(async move { c.inspect(&resource).await }))
            .await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Snapshot>> {
        let prefix = prefix.to_owned();
        self.database
            .run(move |c| Box::pin(async move { c.list(&prefix).await }))
            .await
    }

    async fn evict(&self, id: &HoldId) -> Result<Released> {
        // Told first, then freed: a victim of this process must not work beside its successor.
        if self.shared.registry.holds(id.attempt()) {
            self.shared.lose(id);
        }
        let evicted = self
            .remove(std::slice::from_ref(id), Cause::Eviction)
            .await?;
        Ok(evicted.first().copied().unwrap_or(Released::NotHeld))
    }

    async fn attempt_all(&self, claims: &[Claim]) -> Result<Together> {
        for claim in claims {
            self.check(claim)?;
        }
        let claims = claims.to_vec();
        self.database
            .run(move |c| Box::pin(async move { c.attempt_all(&claims).await }))
            .await
    }

    async fn convert(&self, id: &HoldId, mode: Mode) -> Result<Converted> {
        let id = id.clone();
        self.database
            .run(move |c| Box::pin(async move { c.convert(&id, mode).await }))
            .await
    }

    async fn request_release(&self, resource: &Resource) -> Result<usize> {
        let resource = resource.clone();
        self.database
            .run(move |c| Box::pin(async move { c.request_release(&resource).await }))
            .await
    }

    async fn set_size(&self, resource: &Resource, size: u32) -> Result<bool> {
        let resource = resource.clone();
        self.database
            .run(move |c| Box::pin(async move { c.set_size(&resource, size).await }))
            .await
    }

    async fn set_latch(&self, resource: &Resource, count: u32) -> Result<bool> {
        let resource = resource.clone();
        self.database
            .run(move |c| Box::pin(async move { c.set_latch(&resource, count).await }))
            .await
    }

    async fn count_down(&self, resource: &Resource, participant: &LockName) -> Result<CountDown> {
        let (resource, participant) = (resource.clone(), participant.clone());
        self.database
            .run(move |c| Box::pin(async move { c.count_down(&resource, &participant).await }))
            .await
    }

    fn session_file(&self, id: &HoldId) -> Option<File> {
        self.shared
            .registry
            .session_of(id.attempt())?
            .file
            .try_clone()
            .ok()
    }

    async fn probe(&self) -> Result<Vec<(&'static str, String)>> {
        self.database
            .run(move |c| Box::pin(async move { c.probe().await }))
            .await
    }

    async fn close(&self) -> Result<()> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.shared.bell.silence();
        self.database
            .run(move |c| Box::pin(async move { c.close_sessions().await }))
            .await
    }
}

#[cfg(test)]
#[path = "backend_tests.rs"]
mod tests;
