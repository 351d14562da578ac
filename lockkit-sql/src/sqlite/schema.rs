//! Making and checking what is stored.

use std::time::Duration;

use lockkit_core::{Clock, Error, ErrorKind};
use sqlx::SqliteConnection;

use super::descriptor::DRIVER;
use super::error::{Fault, file_error};
use super::files::SessionId;
use super::session::millis;
use super::shared::Shared;
use super::transaction::delete_session;
use super::writer::Writer;

/// The schema that this version writes.
pub(super) const VERSION: i64 = 2;

/// The statements that make it.
const DDL: &str = include_str!("schema.sql");

/// The statements that make it of a file of version 1.
const UPGRADE: &str = include_str!("schema_2.sql");

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Makes or checks the tables, ends what an earlier boot left, sweeps what the dead left.
///
/// Writes nothing to a file that is damaged, foreign or newer, and nothing at all if all is well.
pub(super) async fn prepare(
    sql: &mut SqliteConnection,
    writer: &mut Writer,
    shared: &Shared,
) -> Result<(), Fault> {
    let boot = boot_id()?;
    let found = check(sql, shared).await?;
    let is_ready = found.is_some_and(|found| found == (VERSION, boot.clone()));
    if !is_ready || !is_wal(sql).await? {
        let _turn = writer.turn().await?;
        switch_to_wal(sql, shared).await?;
        sqlx::query("BEGIN IMMEDIATE").execute(&mut *sql).await?;
        let made = make(sql, shared, &boot).await;
        let end = if made.is_ok() { "COMMIT" } else { "ROLLBACK" };
        sqlx::query(end).execute(&mut *sql).await?;
        made?;
    }
    sweep(sql, writer, shared).await
}

/// The version of the tables, and the boot that they belong to; `None` if there are none.
async fn check(
    sql: &mut SqliteConnection,
    shared: &Shared,
) -> Result<Option<(i64, String)>, Fault> {
    let exists = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'lockkit_meta'";
    let exists: Option<(i64,)> = sqlx::query_as(exists).fetch_optional(&mut *sql).await?;
    if exists.is_none() {
        return Ok(None);
    }
    let meta: Option<(i64, String)> =
        sqlx::query_as("SELECT schema_version, boot FROM lockkit_meta WHERE id = 1")
            .fetch_optional(&mut *sql)
            .await?;
    match meta {
        Some(found @ (1..=VERSION, _)) => Ok(Some(found)),
        Some((newer, _)) if newer > VERSION => Err(corrupt(
            format!(
                "written by a newer lockkit (schema {newer}, this one knows {VERSION}); upgrade \
                 this program"
            ),
            shared,
        )),
        _ => Err(corrupt(
            "lockkit_meta is damaged, and was left untouched; stop every process that uses the \
             file and move it away",
            shared,
        )),
    }
}

fn corrupt(message: impl Into<String>, shared: &Shared) -> Fault {
    let path = shared.files.database().display();
    Error::new(ErrorKind::Corrupt, message)
        .on(DRIVER)
        .with("path", path)
        .into()
}

async fn is_wal(sql: &mut SqliteConnection) -> Result<bool, Fault> {
    let (mode,): (String,) = sqlx::query_as("PRAGMA journal_mode").fetch_one(sql).await?;
    Ok(mode == "wal")
}

/// Changing the mode needs the file for itself for a moment, and SQLite does not wait for that.
async fn switch_to_wal(sql: &mut SqliteConnection, shared: &Shared) -> Result<(), Fault> {
    const PAUSE: Duration = Duration::from_millis(5);
    let mut left = shared.options.busy_timeout;
    loop {
        let switched = sqlx::query_as("PRAGMA journal_mode = WAL")
            .fetch_one(&mut *sql)
            .await;
        match switched.map_err(Fault::from) {
            Ok((mode,)) => {
                let mode: String = mode;
                if mode == "wal" {
                    return Ok(());
                }
                return Err(Error::new(
                    ErrorKind::InvalidConfig,
                    format!(
                        "this file system does not support SQLite's WAL (journal mode stays \
                         {mode}); put the database on a local disk"
                    ),
                )
                .on(DRIVER)
                .with("path", shared.files.database().display())
                .into());
            }
            Err(fault) if fault.is_busy() && !left.is_zero() => {
                tokio::time::sleep(PAUSE).await;
                left = left.saturating_sub(PAUSE);
            }
            Err(fault) => return Err(fault),
        }
    }
}

/// With nobody else writing.
async fn make(sql: &mut SqliteConnection, shared: &Shared, boot: &str) -> Result<(), Fault> {
    let found = check(sql, shared).await?;
    if matches!(found, Some((1, _))) {
        sqlx::raw_sql(UPGRADE).execute(&mut *sql).await?;
    }
    match found {
        None => {
            sqlx::raw_sql(DDL).execute(&mut *sql).await?;
            let meta = "INSERT INTO lockkit_meta (id, schema_version, boot) VALUES (1, ?1, ?2)";
            sqlx::query(meta)
                .bind(VERSION)
                .bind(boot)
                .execute(&mut *sql)
                .await?;
        }
        Some((_, found)) if found != boot => {
            // No process of an earlier boot lives, and none of its times mean anything now.
            for statement in [
                "DELETE FROM lockkit_session",
                "DELETE FROM lockkit_waiter",
                "DELETE FROM lockkit_holder",
                "DELETE FROM lockkit_eviction",
                "DELETE FROM lockkit_request",
                "UPDATE lockkit_lock
                    SET session = NULL, attempt = NULL, expires_at = NULL, label = '', queued = 0
                  WHERE attempt IS NOT NULL OR queued > 0",
            ] {
                sqlx::query(statement).execute(&mut *sql).await?;
            }
            let stamp = "UPDATE lockkit_meta SET boot = ?1";
            sqlx::query(stamp).bind(boot).execute(&mut *sql).await?;
        }
        Some(_) => {}
    }
    Ok(())
}

/// Removes sessions that nobody will miss: a missing row says the same as a dead one.
async fn sweep(
    sql: &mut SqliteConnection,
    writer: &mut Writer,
    shared: &Shared,
) -> Result<(), Fault> {
    let sessions: Vec<(Vec<u8>, i64, i64)> =
        sqlx::query_as("SELECT id, ttl_ms, expires_at FROM lockkit_session LIMIT 10000")
            .fetch_all(&mut *sql)
            .await?;
    let now_ms = millis(Clock::Boot.now());
    let mut known = Vec::new();
    let mut dead = Vec::new();
    for (id, ttl_ms, expires_at) in sessions {
        let Some(id) = SessionId::from_bytes(&id) else {
            continue;
        };
        known.push(id);
        // An idle session may well be past its lease; it is made good at its next use.
        let is_stale = expires_at.saturating_add(ttl_ms.saturating_mul(10)) < now_ms;
        if is_stale || shared.files.is_abandoned(id) {
            dead.push(id);
        }
    }
    if !dead.is_empty() {
        let _turn = writer.turn().await?;
        for id in dead {
            // A stale one may have come back to life meanwhile, an abandoned one never does.
            let bury = "DELETE FROM lockkit_session WHERE id = ?1 AND (?2 OR expires_at < ?3)";
            let is_abandoned = shared.files.is_abandoned(id);
            let buried = sqlx::query(bury)
                .bind(id.as_bytes())
                .bind(is_abandoned)
                .bind(now_ms)
                .execute(&mut *sql)
                .await?;
            if buried.rows_affected() == 1 {
                shared.files.remove_session(id);
                delete_session(sql, id).await?;
            }
        }
    }
    sweep_latches(sql, writer).await?;
    shared.files.sweep(|id| known.contains(&id));
    Ok(())
}

/// Who waits at a latch and has no session any more. Elsewhere whoever comes next in line, or lets
/// go, takes the dead out; at a latch nobody comes next.
const ORPHANS: &str = "
SELECT count(*) FROM lockkit_waiter w
 WHERE w.key >= 'latch/' AND w.key < 'latch0'
   AND NOT EXISTS (SELECT 1 FROM lockkit_session s WHERE s.id = w.session)";

const STRIKE_ORPHANS: &str = "
BEGIN IMMEDIATE;
DELETE FROM lockkit_waiter
 WHERE key >= 'latch/' AND key < 'latch0'
   AND NOT EXISTS (SELECT 1 FROM lockkit_session s WHERE s.id = lockkit_waiter.session);
UPDATE lockkit_lock
   SET queued = (SELECT count(*) FROM lockkit_waiter w WHERE w.key = lockkit_lock.key)
 WHERE key >= 'latch/' AND key < 'latch0';
COMMIT";

async fn sweep_latches(sql: &mut SqliteConnection, writer: &mut Writer) -> Result<(), Fault> {
    let (orphans,): (i64,) = sqlx::query_as(ORPHANS).fetch_one(&mut *sql).await?;
    if orphans > 0 {
        let _turn = writer.turn().await?;
        sqlx::raw_sql(STRIKE_ORPHANS).execute(sql).await?;
    }
    Ok(())
}

fn boot_id() -> Result<String, Error> {
    if !cfg!(target_os = "linux") {
        // Elsewhere a restart is noticed by the sessions' files alone.
        return Ok(String::new());
    }
    let read = std::fs::read_to_string(BOOT_ID);
    let boot =
        read.map_err(|error| file_error("read the id of this boot", BOOT_ID.as_ref(), error))?;
    Ok(boot.trim().into())
}
