//! What the tests of the SQLite backend share: clients on one database, and claims.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "part of several tests, each of which uses some of it"
)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use lockkit_core::{
    Attempt, AttemptId, Backend, Claim, Grant, HoldId, Label, LockName, Mode, Order, Primitive,
    Released, Renewal, Resource, Snapshot, Ticket,
};
use lockkit_servers::scratch;
use lockkit_sql::Sqlite;
use sqlx::{ConnectOptions, SqliteConnection};
use tempfile::TempDir;

/// Long enough for a loaded machine; a test that waits for it has failed.
pub const PATIENCE: Duration = Duration::from_secs(20);
pub const LONG: Duration = Duration::from_secs(60);
/// The shortest lease.
pub const SHORT: Duration = Duration::from_millis(500);

/// A database of its own.
pub struct Store {
    dir: TempDir,
    options: &'static str,
}

impl Store {
    pub fn new() -> Self {
        Self::with("")
    }

    /// With options for the URL of every client.
    pub fn with(options: &'static str) -> Self {
        Self {
            dir: scratch("lockkit-sqlite-").unwrap(),
            options,
        }
    }

    pub fn path(&self) -> PathBuf {
        self.dir.path().join("locks.db")
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn url(&self) -> String {
        format!("sqlite:{}?{}", self.path().display(), self.options)
    }

    pub async fn client(&self) -> Sqlite {
        Sqlite::connect(&self.url()).await.unwrap()
    }

    /// A connection beside lockkit's.
    pub async fn sql(&self) -> SqliteConnection {
        sqlx::sqlite::SqliteConnectOptions::new()
            .filename(self.path())
            .busy_timeout(PATIENCE)
            .connect()
            .await
            .unwrap()
    }

    pub async fn count(&self, table: &'static str) -> i64 {
        let sql = format!("SELECT count(*) FROM {table}");
        let (count,): (i64,) = sqlx::query_as(sqlx::AssertSqlSafe(sql))
            .fetch_one(&mut self.sql().await)
            .await
            .unwrap();
        count
    }

    /// The files of sessions.
    pub fn session_files(&self) -> usize {
        self.session_paths().len()
    }

    pub fn session_paths(&self) -> Vec<PathBuf> {
        let dir = self.dir.path().join("locks.db.sessions");
        std::fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| !path.ends_with("writer"))
            .collect()
    }
}

pub fn resource(name: &str) -> Resource {
    Resource::new(Primitive::Mutex, LockName::new(name).unwrap())
}

/// A claim that waits, and lets others pass.
pub fn claim(name: &str) -> Claim {
    Claim {
        resource: resource(name),
        mode: Mode::Exclusive,
        order: Order::Barging,
        ttl: LONG,
        attempt: AttemptId::random(),
        label: Label::new("a test").unwrap(),
        wait: true,
    }
}

pub fn fair(name: &str) -> Claim {
    Claim {
        order: Order::Fair,
        ..claim(name)
    }
}

/// A claim that does not wait.
pub fn at_once(name: &str) -> Claim {
    Claim {
        wait: false,
        ..claim(name)
    }
}

/// A claim of any kind that waits in line.
pub fn claim_of(primitive: Primitive, name: &str, mode: Mode) -> Claim {
    Claim {
        resource: Resource::new(primitive, LockName::new(name).unwrap()),
        mode,
        ..claim(name)
    }
}

/// The same without waiting.
pub fn at_once_of(claim: Claim) -> Claim {
    Claim {
        wait: false,
        ..claim
    }
}

/// Changes whenever somebody else has written.
pub async fn data_version(sql: &mut SqliteConnection) -> i64 {
    let version = sqlx::query_as("PRAGMA data_version").fetch_one(sql);
    let (version,): (i64,) = version.await.unwrap();
    version
}

/// A claim on its way.
pub struct Try {
    pub id: HoldId,
    pub ticket: Box<dyn Ticket>,
}

impl Try {
    pub fn enter(backend: &Sqlite, claim: Claim) -> Self {
        Self {
            id: claim.id(),
            ticket: backend.enter(claim).unwrap(),
        }
    }

    pub async fn attempt(&mut self) -> Attempt {
        self.ticket.attempt().await.unwrap()
    }

    #[track_caller]
    pub fn assert_busy(attempt: &Attempt) {
        assert!(matches!(attempt, Attempt::Busy { .. }), "{attempt:?}");
    }

    pub async fn held(&mut self) -> Grant {
        match self.attempt().await {
            Attempt::Held(grant) => grant,
            busy @ Attempt::Busy { .. } => panic!("{busy:?}"),
        }
    }

    pub async fn busy(&mut self) {
        Self::assert_busy(&self.attempt().await);
    }

    /// Waits to be woken.
    pub async fn changed(&mut self) {
        tokio::time::timeout(PATIENCE, self.ticket.changed())
            .await
            .expect("nobody woke us");
    }

    pub async fn stays_asleep(&mut self) {
        let pause = Duration::from_millis(150);
        assert!(
            tokio::time::timeout(pause, self.ticket.changed())
                .await
                .is_err(),
            "woken"
        );
    }

    /// Waits to be woken until it holds.
    pub async fn wait(&mut self) -> Grant {
        let wait = async {
            loop {
                self.ticket.changed().await;
                if let Attempt::Held(grant) = self.attempt().await {
                    return grant;
                }
            }
        };
        tokio::time::timeout(PATIENCE, wait)
            .await
            .expect("never our turn")
    }
}

pub async fn hold(backend: &Sqlite, claim: Claim) -> (HoldId, Grant) {
    let mut attempt = Try::enter(backend, claim);
    let grant = attempt.held().await;
    (attempt.id, grant)
}

/// Stands in line.
pub async fn queue(backend: &Sqlite, claim: Claim) -> Try {
    let mut attempt = Try::enter(backend, claim);
    attempt.busy().await;
    // The first to wait in a process may be woken once, for what happened before it listened.
    let pause = Duration::from_millis(50);
    if tokio::time::timeout(pause, attempt.ticket.changed())
        .await
        .is_ok()
    {
        attempt.busy().await;
    }
    attempt
}

pub async fn release(backend: &Sqlite, id: &HoldId) -> Released {
    backend
        .release(std::slice::from_ref(id))
        .await
        .remove(0)
        .unwrap()
}

pub async fn renew(backend: &Sqlite, id: &HoldId) -> Renewal {
    backend.renew(std::slice::from_ref(id)).await.remove(0)
}

pub async fn inspect(backend: &Sqlite, name: &str) -> Snapshot {
    backend.inspect(&resource(name)).await.unwrap()
}

/// What an id is about.
pub async fn inspect_of(backend: &Sqlite, id: &HoldId) -> Snapshot {
    backend.inspect(id.resource()).await.unwrap()
}

#[track_caller]
pub fn assert_gone(renewal: &Renewal) {
    assert!(matches!(renewal, Renewal::Gone), "{renewal:?}");
}

#[track_caller]
pub fn assert_renewed(renewal: &Renewal) {
    assert!(matches!(renewal, Renewal::Renewed { .. }), "{renewal:?}");
}
