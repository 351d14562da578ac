//! What a held lock weighs.

use std::fs::read_to_string;
use std::time::Instant;

use anyhow::{Context, Result};
use lockkit::{Locker, LockerOptions, Memory};
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use crate::guard::unlock;
use crate::peer::Peer;
use crate::report::Report;

const WORKLOAD: &str = "holds";
/// The bars are for this many, whatever a smoke run takes.
const COUNT: u32 = 100_000;

/// What the child process has found.
#[derive(Debug, Serialize, Deserialize)]
struct Weight {
    megabytes: f64,
    seconds: f64,
    tasks: usize,
}

/// Takes the locks in a fresh process each time, because freed memory would be used again.
pub(super) fn measure(report: &mut Report) -> Result<()> {
    let count = report.pick(COUNT, 10_000);
    let (mut megabytes, mut nanos, mut tasks) = (vec![], vec![], vec![]);
    for _ in 0..report.pick(5, 1) {
        let peer = Peer::start(["holds", &count.to_string()])?;
        let weight: Weight = serde_json::from_str(&peer.hear()?)?;
        megabytes.push(weight.megabytes * f64::from(COUNT) / f64::from(count));
        nanos.push(weight.seconds * 1e9 / f64::from(count));
        tasks.push(f64::from(u32::try_from(weight.tasks)?));
    }
    let weight = report.row(WORKLOAD, "lockkit", ("100,000 held", "MB"), &megabytes);
    report.row(WORKLOAD, "lockkit", ("lock, each", "ns"), &nanos);
    let tasks = report.row(WORKLOAD, "lockkit", ("tasks", "tasks"), &tasks);
    report.bar(WORKLOAD, ("100,000 held locks", "MB"), weight, 100.0);
    report.bar(WORKLOAD, ("watchdog tasks", "tasks"), tasks, 1.0);
    Ok(())
}

/// The child process: the names, the guards and the backend's own state are all its weight.
pub(crate) fn part(count: usize) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let weight = runtime.block_on(async {
        let mut options = LockerOptions::default();
        options.max_holds = options.max_holds.max(count);
        let locker = Locker::with_options(Memory::new(), options)?;
        unlock(locker.mutex("warm up").lock().await?).await?;

        let before = resident_megabytes()?;
        let started = Instant::now();
        let mut guards = Vec::with_capacity(count);
        for i in 0..count {
            guards.push(locker.mutex(format!("orders/{i}")).lock().await?);
        }
        anyhow::Ok(Weight {
            seconds: started.elapsed().as_secs_f64(),
            megabytes: resident_megabytes()? - before,
            tasks: Handle::current().metrics().num_alive_tasks(),
        })
    })?;
    println!("{}", serde_json::to_string(&weight)?);
    Ok(())
}

fn resident_megabytes() -> Result<f64> {
    let statm = read_to_string("/proc/self/statm")?;
    let pages: u32 = statm
        .split(' ')
        .nth(1)
        .context("no resident size in statm")?
        .parse()?;
    let page = u32::try_from(rustix::param::page_size())?;
    Ok(f64::from(pages) * f64::from(page) / 1e6)
}
