//! Ten permits and two hundred who want one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use lockkit::{Locker, Memory};
use tokio::sync::Semaphore;
use tokio::task::yield_now;

use super::crowd::{Rounds, Turn};
use crate::guard::unlock;
use crate::report::Report;

const WORKLOAD: &str = "10 permits, 200 tasks";
const PERMITS: u32 = 10;
const TASKS: usize = 200;

pub(super) fn measure(report: &mut Report) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let locker = runtime.block_on(async { Locker::new(Memory::new()) })?;
    let length = report.pick(Duration::from_millis(300), Duration::from_millis(50));
    let ours = locker.semaphore("permits", PERMITS);
    let inside = Arc::new(AtomicUsize::new(0));
    let floor = Arc::new(Semaphore::new(PERMITS as usize));
    let (mut lockkit, mut tokio) = (Rounds::default(), Rounds::default());
    for _ in 0..report.pick(7, 5) {
        let (ours, inside) = (ours.clone(), Arc::clone(&inside));
        lockkit.run(&runtime, TASKS, length, move || {
            turn(ours.clone(), Arc::clone(&inside))
        })?;
        let floor = Arc::clone(&floor);
        tokio.run(&runtime, TASKS, length, move || {
            floor_turn(Arc::clone(&floor))
        })?;
    }
    lockkit.tell(report, WORKLOAD, "lockkit", None);
    tokio.tell(report, WORKLOAD, "tokio::sync::Semaphore", None);
    Ok(runtime.block_on(locker.close())?)
}

async fn turn(semaphore: lockkit::Semaphore, inside: Arc<AtomicUsize>) -> Result<Turn> {
    let began = Instant::now();
    let guard = semaphore.acquire().await?;
    let waited = began.elapsed();
    ensure!(
        inside.fetch_add(1, SeqCst) < PERMITS as usize,
        "more permits than there are"
    );
    yield_now().await;
    inside.fetch_sub(1, SeqCst);
    unlock(guard).await?;
    Ok(Turn {
        waited,
        watched: false,
    })
}

async fn floor_turn(semaphore: Arc<Semaphore>) -> Result<Turn> {
    let began = Instant::now();
    let _permit = semaphore.acquire().await?;
    let waited = began.elapsed();
    yield_now().await;
    Ok(Turn {
        waited,
        watched: false,
    })
}
