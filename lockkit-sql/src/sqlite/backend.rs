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
        if self.closed.load(Ordering::Acquire) {
            return Err(closed());
        }
        DESCRIPTOR.require(claim.resource.primitive())?;
        if claim.mode != Mode::Exclusive {
            let message = "this backend has exclusive locks only";
            return Err(Error::new(ErrorKind::Unsupported, message).on(DRIVER));
        }
        DESCRIPTOR.check_ttl(claim.ttl)?;
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
        let _ = claims;
        Ok(Together::OneByOne)
    }

    async fn convert(&self, id: &HoldId, mode: Mode) -> Result<Converted> {
        let _ = (id, mode);
        Err(unsupported())
    }

    async fn request_release(&self, resource: &Resource) -> Result<usize> {
        let _ = resource;
        Err(unsupported())
    }

    async fn set_size(&self, resource: &Resource, size: u32) -> Result<bool> {
        let _ = (resource, size);
        Err(unsupported())
    }

    async fn set_latch(&self, resource: &Resource, count: u32) -> Result<bool> {
        let _ = (resource, count);
        Err(unsupported())
    }

    async fn count_down(&self, resource: &Resource, participant: &LockName) -> Result<CountDown> {
        let _ = (resource, participant);
        Err(unsupported())
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

fn unsupported() -> Error {
    Error::new(
        ErrorKind::Unsupported,
        "this backend has exclusive locks only",
    )
    .on(DRIVER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockkit_core::{Attempt, AttemptId, Label, LockName, Order, Primitive};

    async fn attempt(backend: &Sqlite, name: &str) -> (HoldId, Result<Attempt>) {
        let claim = Claim {
            resource: Resource::new(Primitive::Mutex, LockName::new(name).unwrap()),
            mode: Mode::Exclusive,
            order: Order::Barging,
            ttl: Duration::from_secs(30),
            attempt: AttemptId::random(),
            label: Label::process(),
            wait: true,
        };
        let id = claim.id();
        (id, backend.enter(claim).unwrap().attempt().await)
    }

    #[tokio::test]
    async fn grants_are_flushed_also_after_a_release_that_was_not() {
        let dir = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", dir.path().join("locks.db").display());
        let backend = Sqlite::connect(&url).await.unwrap();
        for _ in 0..3 {
            let (id, held) = attempt(&backend, "a").await;
            assert!(matches!(held, Ok(Attempt::Held(_))));
            let released = backend.release(&[id]).await;
            assert_eq!(released[0].as_ref().unwrap(), &Released::Done);
            let level = backend.database.run(|c| {
                Box::pin(async move {
                    let (level,): (i64,) = sqlx::query_as("PRAGMA synchronous")
                        .fetch_one(c.read().await?)
                        .await?;
                    Ok(level)
                })
            });
            assert_eq!(level.await.unwrap(), 2, "2 is FULL");
        }
    }

    #[tokio::test]
    async fn a_full_disk_is_told_and_nothing_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", dir.path().join("locks.db").display());
        let backend = Sqlite::connect(&url).await.unwrap();
        let (first, held) = attempt(&backend, "first").await;
        assert!(matches!(held, Ok(Attempt::Held(_))));
        // The file cannot grow any more.
        let limit = backend.database.run(|c| {
            Box::pin(async move {
                sqlx::query("PRAGMA max_page_count = 1")
                    .execute(c.read().await?)
                    .await?;
                Ok(())
            })
        });
        limit.await.unwrap();
        let mut held = Vec::new();
        let error = loop {
            let name = format!("{:0>200}", held.len());
            match attempt(&backend, &name).await {
                (id, Ok(Attempt::Held(_))) => held.push(id),
                (_, Ok(busy)) => panic!("{busy:?}"),
                (_, Err(error)) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Full, "{error}");
        held.push(first);
        let renewed = backend.renew(&held).await;
        assert!(
            renewed
                .iter()
                .all(|renewal| matches!(renewal, Renewal::Renewed { .. }))
        );
        for released in backend.release(&held).await {
            assert_eq!(released.unwrap(), Released::Done);
        }
    }
}
