//! A bare connection: the floor that lockkit stands on.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, SqliteConnection};

/// One SQLite connection with lockkit's file settings, and one row to write.
#[derive(Debug)]
pub(super) struct Floor(SqliteConnection);

impl Floor {
    /// Makes the file and the row.
    pub(super) async fn create(path: &Path) -> Result<Self> {
        let mut connection = open(path).await?;
        sqlx::raw_sql(
            "CREATE TABLE floor (name BLOB PRIMARY KEY, holder BLOB, fence INTEGER NOT NULL) \
             WITHOUT ROWID; \
             INSERT INTO floor VALUES (x'00', NULL, 0)",
        )
        .execute(&mut connection)
        .await?;
        Ok(Self(connection))
    }

    /// Two writes of one statement each, as short as a lock and an unlock can be.
    pub(super) async fn pair(&mut self) -> Result<()> {
        for statement in [
            "UPDATE floor SET holder = ?1, fence = fence + 1 WHERE name = x'00' AND holder IS NULL",
            "UPDATE floor SET holder = NULL WHERE name = x'00' AND holder = ?1",
        ] {
            let done = sqlx::query(statement)
                .bind(&[7_u8; 16][..])
                .execute(&mut self.0)
                .await?;
            ensure!(
                done.rows_affected() == 1,
                "the floor's row is not as it was left"
            );
        }
        Ok(())
    }

    /// One read of one row.
    pub(super) async fn read(&mut self) -> Result<()> {
        sqlx::query("SELECT holder, fence FROM floor WHERE name = x'00'")
            .fetch_one(&mut self.0)
            .await?;
        Ok(())
    }

    pub(super) async fn close(self) -> Result<()> {
        Ok(self.0.close().await?)
    }
}

/// Opens a database in write-ahead mode with `synchronous=FULL`.
pub(super) async fn open(path: &Path) -> Result<SqliteConnection> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(Duration::from_secs(10))
        .disable_statement_logging();
    Ok(options.connect().await?)
}
