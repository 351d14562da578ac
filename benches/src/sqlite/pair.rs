//! Lock and unlock, with nobody else about, beside two bare writes.

use std::time::Instant;

use anyhow::Result;
use tokio::runtime::Builder;

use super::files::Files;
use super::floor::Floor;
use crate::guard::unlock;
use crate::report::Report;
use crate::statistics::{median, ratios};

const PAIR: (&str, &str) = ("lock + unlock", "us");
const RATIO: (&str, &str) = ("ratio to the floor", "x");

/// The median pair of each round, ours and the floor's.
#[derive(Default)]
struct Figures {
    ours: Vec<f64>,
    floor: Vec<f64>,
}

pub(super) fn measure(report: &mut Report) -> Result<()> {
    let rounds = report.pick(21, 5);
    let pairs = report.pick(200, 30);
    let runtimes = [
        (
            "pair, one thread",
            Builder::new_current_thread().enable_all().build()?,
        ),
        (
            "pair, many threads",
            Builder::new_multi_thread().enable_all().build()?,
        ),
    ];
    for (workload, runtime) in runtimes {
        let files = Files::new(report)?;
        let figures = runtime.block_on(async move { runtime_task(files, rounds, pairs).await })?;
        report.row(workload, "lockkit", PAIR, &figures.ours);
        report.row(workload, "two bare writes", PAIR, &figures.floor);
        let ratio = report.row(
            workload,
            "lockkit / bare",
            RATIO,
            &ratios(&figures.ours, &figures.floor),
        );
        report.bar(workload, RATIO, ratio, 1.15);
    }
    Ok(())
}

async fn runtime_task(files: Files, rounds: usize, pairs: usize) -> Result<Figures> {
    tokio::spawn(async move {
        let locker = lockkit::connect(&files.url()).await?;
        let mutex = locker.mutex("pair");
        let mut floor = Floor::create(&files.path("floor.db")).await?;
        let mut figures = Figures::default();
        for _ in 0..rounds {
            let (mut ours, mut bare) = (vec![], vec![]);
            for _ in 0..pairs {
                let started = Instant::now();
                unlock(mutex.lock().await?).await?;
                ours.push(micros(started));
                let started = Instant::now();
                floor.pair().await?;
                bare.push(micros(started));
            }
            figures.ours.push(median(&ours));
            figures.floor.push(median(&bare));
        }
        floor.close().await?;
        locker.close().await?;
        Ok(figures)
    })
    .await?
}

pub(super) fn micros(started: Instant) -> f64 {
    started.elapsed().as_secs_f64() * 1e6
}
