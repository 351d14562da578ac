//! Lock and unlock, with nobody else about.

use std::hint::black_box;
use std::time::Instant;

use anyhow::Result;
use lockkit::{Locker, Memory};
use tokio::sync::Mutex;

use crate::guard::unlock;
use crate::report::Report;
use crate::statistics::{median, ratios};

const WORKLOAD: &str = "pair";
const PAIR: (&str, &str) = ("lock + unlock", "ns");

pub(super) fn measure(report: &mut Report) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let rounds = report.pick(51, 5);
    let pairs = report.pick(20_000, 1_000);
    // In a task, as in a server: the future that `block_on` drives is no worker's.
    runtime
        .block_on(runtime.spawn(rounds_of(rounds, pairs)))??
        .tell(report);
    Ok(())
}

#[derive(Default)]
struct Figures {
    kept: Vec<f64>,
    made: Vec<f64>,
    tried: Vec<f64>,
    floor: Vec<f64>,
}

impl Figures {
    fn tell(&self, report: &mut Report) {
        let kept = report.row(WORKLOAD, "lockkit", PAIR, &self.kept);
        report.row(WORKLOAD, "lockkit, mutex made anew", PAIR, &self.made);
        report.row(WORKLOAD, "lockkit, try_lock", PAIR, &self.tried);
        report.row(WORKLOAD, "tokio::sync::Mutex", PAIR, &self.floor);
        let ratio = median(&ratios(&self.kept, &self.floor));
        report.row(WORKLOAD, "lockkit / tokio", ("ratio", "x"), &[ratio]);
        report.bar(WORKLOAD, PAIR, kept, 1_000.0);
    }
}

async fn rounds_of(rounds: usize, pairs: u32) -> Result<Figures> {
    let locker = Locker::new(Memory::new())?;
    let mutex = locker.mutex("pair");
    let floor = Mutex::new(());
    let mut figures = Figures::default();

    for _ in 0..rounds {
        let started = Instant::now();
        for _ in 0..pairs {
            unlock(black_box(mutex.lock().await?)).await?;
        }
        figures.kept.push(nanos_each(started, pairs));

        let started = Instant::now();
        for _ in 0..pairs {
            drop(black_box(floor.lock().await));
        }
        figures.floor.push(nanos_each(started, pairs));

        let started = Instant::now();
        for _ in 0..pairs {
            unlock(black_box(locker.mutex("pair").lock().await?)).await?;
        }
        figures.made.push(nanos_each(started, pairs));

        let started = Instant::now();
        for _ in 0..pairs {
            if let Some(guard) = black_box(mutex.try_lock().await?) {
                unlock(guard).await?;
            }
        }
        figures.tried.push(nanos_each(started, pairs));
    }
    locker.close().await?;
    Ok(figures)
}

fn nanos_each(started: Instant, count: u32) -> f64 {
    started.elapsed().as_secs_f64() * 1e9 / f64::from(count)
}
