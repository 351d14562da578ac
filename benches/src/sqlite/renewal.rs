//! Renewing many holds.

use std::time::Duration;

use anyhow::{Result, ensure};
use lockkit::{Locker, LockerOptions};
use lockkit_sql::Sqlite;
use sqlx::{Connection, SqliteConnection};
use tokio::runtime::Builder;

use super::files::Files;
use super::floor::open;
use crate::report::Report;
use crate::watched::{Beats, Watched};

const WORKLOAD: &str = "renewing 10,000 holds";
const TTL: Duration = Duration::from_secs(6);

pub(super) fn measure(report: &mut Report) -> Result<()> {
    let files = Files::new(report)?;
    Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(beats(report, &files))
}

async fn beats(report: &mut Report, files: &Files) -> Result<()> {
    let count = report.pick(10_000, 500);
    let beats = Beats::default();
    let backend = Watched {
        backend: Sqlite::connect(&files.url()).await?,
        beats: beats.clone(),
    };
    let mut options = LockerOptions::default();
    options.ttl = TTL;
    options.max_holds = options.max_holds.max(count);
    let locker = Locker::with_options(backend, options)?;
    let mut guards = Vec::with_capacity(count);
    for i in 0..count {
        guards.push(locker.mutex(format!("orders/{i}")).lock().await?);
    }

    let mut observer = open(&files.database()).await?;
    count_writes(&mut observer).await?;
    beats.take();
    let before = rows_written(&mut observer).await?;
    // Longer than a lease: whoever was not renewed in it is lost.
    tokio::time::sleep(report.pick(TTL * 3, TTL + TTL / 6)).await;
    let seen = beats.take();
    let written = rows_written(&mut observer).await? - before;
    ensure!(!seen.is_empty(), "nothing was renewed");
    ensure!(
        guards.iter().all(lockkit::Guard::is_held),
        "a hold was lost"
    );

    let took: Vec<f64> = seen
        .iter()
        .map(|beat| beat.took.as_secs_f64() * 1e6)
        .collect();
    let ids: Vec<f64> = seen
        .iter()
        .filter_map(|beat| u32::try_from(beat.ids).ok())
        .map(f64::from)
        .collect();
    let rows = f64::from(written) / f64::from(u32::try_from(seen.len())?);
    report.row(WORKLOAD, "lockkit", ("beat", "us"), &took);
    report.row(WORKLOAD, "lockkit", ("holds in a beat", "holds"), &ids);
    report.row(WORKLOAD, "lockkit", ("rows in a beat", "rows"), &[rows]);
    report.bar(WORKLOAD, ("rows written in a beat", "rows"), rows, 1.0);

    observer.close().await?;
    drop(guards);
    Ok(locker.close().await?)
}

/// Makes SQLite count every row that anybody writes, with triggers.
async fn count_writes(observer: &mut SqliteConnection) -> Result<()> {
    let tables: Vec<String> =
        sqlx::query_scalar("SELECT name FROM sqlite_schema WHERE type = 'table'")
            .fetch_all(&mut *observer)
            .await?;
    let mut script =
        "CREATE TABLE bench_written (rows INTEGER); INSERT INTO bench_written VALUES (0);"
            .to_owned();
    for table in tables {
        for event in ["INSERT", "UPDATE", "DELETE"] {
            script.push_str(&format!(
                "CREATE TRIGGER bench_{table}_{event} AFTER {event} ON {table} \
                 BEGIN UPDATE bench_written SET rows = rows + 1; END;"
            ));
        }
    }
    sqlx::raw_sql(sqlx::AssertSqlSafe(script))
        .execute(observer)
        .await?;
    Ok(())
}

async fn rows_written(observer: &mut SqliteConnection) -> Result<u32> {
    Ok(sqlx::query_scalar("SELECT rows FROM bench_written")
        .fetch_one(observer)
        .await?)
}
