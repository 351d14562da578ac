//! Locks in PostgreSQL.

use anyhow::{Result, ensure};
use sqlx::postgres::{PgAdvisoryLock, PgAdvisoryLockGuard};
use sqlx::{Connection, Either, Executor, PgConnection};

use super::{Peer, Task, held};
use crate::options::Options;

fn url(options: &Options) -> String {
    format!("postgres://postgres@{}/postgres", options.server)
}

/// Makes the one table that the row locks use, with a row for `key`.
async fn connect_with_row(url: &str, key: &str) -> Result<PgConnection> {
    let mut connection = PgConnection::connect(url).await?;
    sqlx::query("INSERT INTO bench_lock VALUES ($1, '') ON CONFLICT DO NOTHING")
        .bind(key)
        .execute(&mut connection)
        .await?;
    Ok(connection)
}

async fn create_table(url: &str) -> Result<()> {
    let mut connection = PgConnection::connect(url).await?;
    connection
        .execute(
            "BEGIN; SELECT pg_advisory_xact_lock(1);
             CREATE TABLE IF NOT EXISTS bench_lock (name text PRIMARY KEY, owner text NOT NULL); COMMIT",
        )
        .await?;
    Ok(())
}

/// sqlx's session-level advisory lock, one connection per task.
pub(crate) struct Advisory(String);

pub(crate) struct AdvisoryTask {
    lock: PgAdvisoryLock,
    connection: Option<PgConnection>,
    guard: Option<PgAdvisoryLockGuard<PgConnection>>,
}

impl Peer for Advisory {
    type Task = AdvisoryTask;
    async fn connect(options: &Options) -> Result<Self> {
        Ok(Self(url(options)))
    }
    async fn task(&self, key: &str) -> Result<AdvisoryTask> {
        let connection = Some(PgConnection::connect(&self.0).await?);
        Ok(AdvisoryTask {
            lock: PgAdvisoryLock::new(key),
            connection,
            guard: None,
        })
    }
}

impl Task for AdvisoryTask {
    async fn lock(&mut self) -> Result<()> {
        let connection = held(&mut self.connection)?;
        self.guard = Some(self.lock.acquire(connection).await?);
        Ok(())
    }
    async fn unlock(&mut self) -> Result<()> {
        self.connection = Some(held(&mut self.guard)?.release_now().await?);
        Ok(())
    }
    async fn try_lock(&mut self) -> Result<bool> {
        let connection = held(&mut self.connection)?;
        match self.lock.try_acquire(connection).await? {
            Either::Left(guard) => self.guard = Some(guard),
            Either::Right(connection) => self.connection = Some(connection),
        }
        Ok(self.guard.is_some())
    }
}

/// A row lock held by an open transaction, one connection per task.
pub(crate) struct ForUpdate(String);

pub(crate) struct ForUpdateTask {
    connection: PgConnection,
    key: String,
}

impl Peer for ForUpdate {
    type Task = ForUpdateTask;
    async fn connect(options: &Options) -> Result<Self> {
        create_table(&url(options)).await?;
        Ok(Self(url(options)))
    }
    async fn task(&self, key: &str) -> Result<ForUpdateTask> {
        Ok(ForUpdateTask {
            connection: connect_with_row(&self.0, key).await?,
            key: key.into(),
        })
    }
}

impl Task for ForUpdateTask {
    async fn lock(&mut self) -> Result<()> {
        self.connection.execute("BEGIN").await?;
        let select =
            sqlx::query("SELECT 1 FROM bench_lock WHERE name = $1 FOR UPDATE").bind(&self.key);
        select.fetch_one(&mut self.connection).await?;
        Ok(())
    }
    async fn unlock(&mut self) -> Result<()> {
        self.connection.execute("COMMIT").await?;
        Ok(())
    }
    async fn try_lock(&mut self) -> Result<bool> {
        self.connection.execute("BEGIN").await?;
        let select = sqlx::query("SELECT 1 FROM bench_lock WHERE name = $1 FOR UPDATE SKIP LOCKED")
            .bind(&self.key);
        let row = select.fetch_optional(&mut self.connection).await?;
        if row.is_none() {
            self.connection.execute("ROLLBACK").await?;
        }
        Ok(row.is_some())
    }
}

/// The least that a lease row can cost: two single-row updates by primary key, each its own transaction.
pub(crate) struct Floor(String);

pub(crate) struct FloorTask {
    connection: PgConnection,
    key: String,
}

impl FloorTask {
    async fn set_owner(&mut self, owner: &str) -> Result<()> {
        let update = sqlx::query("UPDATE bench_lock SET owner = $2 WHERE name = $1")
            .bind(&self.key)
            .bind(owner);
        let rows = update.execute(&mut self.connection).await?.rows_affected();
        ensure!(rows == 1, "no such row");
        Ok(())
    }
}

impl Peer for Floor {
    type Task = FloorTask;
    async fn connect(options: &Options) -> Result<Self> {
        create_table(&url(options)).await?;
        Ok(Self(url(options)))
    }
    async fn task(&self, key: &str) -> Result<FloorTask> {
        let key = format!("floor-{key}");
        Ok(FloorTask {
            connection: connect_with_row(&self.0, &key).await?,
            key,
        })
    }
}

impl Task for FloorTask {
    async fn lock(&mut self) -> Result<()> {
        self.set_owner("token-of-20-bytes---").await
    }
    async fn unlock(&mut self) -> Result<()> {
        self.set_owner("").await
    }
}
