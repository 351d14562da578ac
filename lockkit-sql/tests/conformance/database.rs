//! SQLite as the conformance suite sees it: each case has a database of its own.

use std::path::PathBuf;

use async_trait::async_trait;
use lockkit_core::{Backend, Descriptor, Error, ErrorKind, Resource, Result};
use lockkit_servers::scratch;
use lockkit_sql::Sqlite;
use lockkit_testkit::Harness;
use sqlx::sqlite::{SqliteConnectOptions, SqliteRow};
use sqlx::{ConnectOptions, Connection, Row, SqliteConnection};
use tempfile::TempDir;

/// What may be left in the tables: who holds, who waits, whose session, whose news.
const CENSUS: &[&str] = &[
    "SELECT 'hold of ' || key || ' by ' || label FROM lockkit_lock
      WHERE attempt IS NOT NULL OR session IS NOT NULL OR expires_at IS NOT NULL",
    "SELECT 'queue of ' || queued || ' at ' || key FROM lockkit_lock WHERE queued <> 0",
    "SELECT 'place in line for ' || key || ' of ' || label FROM lockkit_waiter",
    "SELECT 'session ' || hex(id) FROM lockkit_session",
    "SELECT 'news about ' || key FROM lockkit_eviction",
    "SELECT 'request for ' || key FROM lockkit_request",
    "SELECT 'hold of ' || key || ' by ' || label FROM lockkit_holder",
    // While a latch is closed, who took part belongs to its count.
    "SELECT 'arrival of ' || participant || ' at ' || a.key FROM lockkit_arrival a
      WHERE NOT EXISTS (SELECT 1 FROM lockkit_lock l WHERE l.key = a.key AND l.latch_left > 0)",
];

/// A database in a directory of its own.
#[derive(Debug)]
pub(crate) struct Database {
    /// Made when it is first needed; an error of the file system is found by whoever connects.
    dir: std::sync::OnceLock<Option<TempDir>>,
    wakeup: &'static str,
}

impl Database {
    pub(crate) const fn new(wakeup: &'static str) -> Self {
        Self {
            dir: std::sync::OnceLock::new(),
            wakeup,
        }
    }

    fn path(&self) -> PathBuf {
        let dir = self.dir.get_or_init(|| scratch("lockkit-sqlite-").ok());
        dir.as_ref()
            .map_or_else(PathBuf::new, |dir| dir.path().join("locks.db"))
    }

    /// Past the backend, as an operator with `sqlite3` would look at it.
    async fn open(&self) -> Result<SqliteConnection> {
        SqliteConnectOptions::new()
            .filename(self.path())
            .connect()
            .await
            .map_err(unexpected)
    }

    fn session_files(&self) -> Vec<String> {
        let mut sessions = self.path().into_os_string();
        sessions.push(".sessions");
        let files = std::fs::read_dir(sessions).into_iter().flatten().flatten();
        let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
        names.filter(|name| name != "writer").collect()
    }
}

fn unexpected(error: sqlx::Error) -> Error {
    Error::new(
        ErrorKind::Unexpected,
        "the test cannot look at the database",
    )
    .because(error)
}

#[async_trait]
impl Harness for Database {
    fn descriptor(&self) -> &Descriptor {
        Sqlite::descriptor()
    }

    async fn backend(&self) -> Result<Box<dyn Backend>> {
        self.backend_at(&self.url().unwrap_or_default()).await
    }

    async fn census(&self) -> Result<Vec<String>> {
        let mut sql = self.open().await?;
        let mut left = Vec::new();
        for query in CENSUS {
            let rows = sqlx::query(*query)
                .fetch_all(&mut sql)
                .await
                .map_err(unexpected)?;
            left.extend(rows.iter().map(|row: &SqliteRow| row.get::<String, _>(0)));
        }
        sql.close().await.map_err(unexpected)?;
        left.extend(
            self.session_files()
                .into_iter()
                .map(|name| format!("file {name}")),
        );
        Ok(left)
    }

    async fn expire(&self, resource: &Resource) -> Result<()> {
        const FORGET: [&str; 2] = [
            "UPDATE lockkit_lock
                SET session = NULL, attempt = NULL, expires_at = NULL, label = ''
              WHERE key = ?1",
            "DELETE FROM lockkit_holder WHERE key = ?1",
        ];
        let mut sql = self.open().await?;
        for forget in FORGET {
            sqlx::query(forget)
                .bind(resource.key())
                .execute(&mut sql)
                .await
                .map_err(unexpected)?;
        }
        sql.close().await.map_err(unexpected)
    }

    fn url(&self) -> Option<String> {
        Some(format!(
            "sqlite:{}?wakeup={}",
            self.path().display(),
            self.wakeup
        ))
    }

    async fn backend_at(&self, url: &str) -> Result<Box<dyn Backend>> {
        Ok(Box::new(Sqlite::connect(url).await?))
    }
}
