//! Trying a lock that another process holds.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use lockkit::LockerOptions;
use sqlx::{Connection, SqliteConnection};
use tokio::runtime::Builder;

use super::files::Files;
use super::floor::{Floor, open};
use super::pair::micros;
use crate::contender::Contender;
use crate::report::Report;
use crate::statistics::{median, ratios};

const WORKLOAD: &str = "failing try_lock";
const TRY: (&str, &str) = ("try", "us");

pub(super) fn measure(report: &mut Report) -> Result<()> {
    let files = Files::new(report)?;
    let [target, _] = files.targets()?;
    let mut holder = Contender::start(&target)?;
    holder.take()?;
    holder.held()?;
    Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(tries(report, &files, &target.name))
}

async fn tries(report: &mut Report, files: &Files, name: &str) -> Result<()> {
    const ROUNDS: usize = 10;
    let mut options = LockerOptions::default();
    // No beat may fall into the time in which writes are counted.
    options.ttl = Duration::from_secs(600);
    let locker = lockkit::connect_with(&files.url(), options).await?;
    let mutex = locker.mutex(name);
    let mut floor = Floor::create(&files.path("floor.db")).await?;
    let mut observer = open(&files.database()).await?;
    ensure!(mutex.try_lock().await?.is_none(), "nobody holds the lock");

    let before = Written::look(&mut observer, files).await?;
    let (mut ours, mut bare) = (vec![], vec![]);
    for _ in 0..ROUNDS {
        let (mut round, mut floor_round) = (vec![], vec![]);
        for _ in 0..report.pick(100, 10) {
            let started = Instant::now();
            ensure!(mutex.try_lock().await?.is_none(), "the lock was free");
            round.push(micros(started));
            let started = Instant::now();
            floor.read().await?;
            floor_round.push(micros(started));
        }
        ours.push(median(&round));
        bare.push(median(&floor_round));
    }
    let after = Written::look(&mut observer, files).await?;

    report.row(WORKLOAD, "lockkit", TRY, &ours);
    report.row(WORKLOAD, "one bare read", TRY, &bare);
    report.row(
        WORKLOAD,
        "lockkit / bare",
        ("ratio to the floor", "x"),
        &ratios(&ours, &bare),
    );
    let grown = (after.bytes - before.bytes).abs();
    let commits = if after.version == before.version {
        0.0
    } else {
        1.0
    };
    report.row(WORKLOAD, "lockkit", ("log grown by", "bytes"), &[grown]);
    report.bar(WORKLOAD, ("write-ahead log grown by", "bytes"), grown, 0.0);
    report.bar(WORKLOAD, ("database changed (1 = yes)", ""), commits, 0.0);

    observer.close().await?;
    floor.close().await?;
    Ok(locker.close().await?)
}

/// What a write would change: the log's length, and SQLite's own count of others' commits.
struct Written {
    bytes: f64,
    version: i64,
}

impl Written {
    async fn look(observer: &mut SqliteConnection, files: &Files) -> Result<Self> {
        let log = fs::metadata(files.path("locks.db-wal"))?.len();
        let version = sqlx::query_scalar("PRAGMA data_version")
            .fetch_one(observer)
            .await?;
        Ok(Self {
            bytes: f64::from(u32::try_from(log)?),
            version,
        })
    }
}
