//! Four of sixteen names at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use lockkit::{Locker, Memory};
use rand::seq::index::sample;
use tokio::sync::Mutex;
use tokio::task::yield_now;

use super::crowd::{Rounds, Turn};
use crate::guard::unlock;
use crate::report::Report;

const WORKLOAD: &str = "4 of 16 names, 32 tasks";
const NAMES: usize = 16;
const AT_ONCE: usize = 4;
const TASKS: usize = 32;

pub(super) fn measure(report: &mut Report) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let locker = runtime.block_on(async { Locker::new(Memory::new()) })?;
    let length = report.pick(Duration::from_millis(300), Duration::from_millis(50));
    let inside: Arc<[AtomicBool; NAMES]> = Arc::default();
    let floor: Arc<[Mutex<()>; NAMES]> = Arc::default();
    let (mut lockkit, mut tokio) = (Rounds::default(), Rounds::default());
    for _ in 0..report.pick(7, 5) {
        let (locker, inside) = (locker.clone(), Arc::clone(&inside));
        lockkit.run(&runtime, TASKS, length, move || {
            turn(locker.clone(), Arc::clone(&inside))
        })?;
        let floor = Arc::clone(&floor);
        tokio.run(&runtime, TASKS, length, move || {
            floor_turn(Arc::clone(&floor))
        })?;
    }
    lockkit.tell(report, WORKLOAD, "lockkit", None);
    tokio.tell(report, WORKLOAD, "tokio::sync::Mutex, sorted", None);
    Ok(runtime.block_on(locker.close())?)
}

fn some() -> Vec<usize> {
    sample(&mut rand::rng(), NAMES, AT_ONCE).into_vec()
}

async fn turn(locker: Locker, inside: Arc<[AtomicBool; NAMES]>) -> Result<Turn> {
    let some = some();
    let began = Instant::now();
    let lock = locker.multi_lock(some.iter().map(|name| name.to_string()));
    let guard = lock.lock().await?;
    let waited = began.elapsed();
    for name in &some {
        ensure!(!inside[*name].swap(true, SeqCst), "two holders of {name}");
    }
    yield_now().await;
    for name in &some {
        inside[*name].store(false, SeqCst);
    }
    unlock(guard).await?;
    Ok(Turn {
        waited,
        watched: false,
    })
}

async fn floor_turn(locks: Arc<[Mutex<()>; NAMES]>) -> Result<Turn> {
    let mut some = some();
    some.sort_unstable();
    let began = Instant::now();
    let mut guards = Vec::with_capacity(AT_ONCE);
    for name in some {
        guards.push(locks[name].lock().await);
    }
    let waited = began.elapsed();
    yield_now().await;
    Ok(Turn {
        waited,
        watched: false,
    })
}
