//! Readers and writers on one name, each for as long as it takes to let others run.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use lockkit::{Locker, Memory, ReadWriteLock};
use tokio::sync::RwLock;
use tokio::task::yield_now;

use super::crowd::{Rounds, Turn};
use crate::guard::unlock;
use crate::report::Report;

const TASKS: usize = 64;
const WATCHED: Option<&str> = Some("writer's worst wait");

pub(super) fn measure(report: &mut Report) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let locker = runtime.block_on(async { Locker::new(Memory::new()) })?;
    let length = report.pick(Duration::from_millis(300), Duration::from_millis(50));
    for (workload, readers) in [("readers/writers 95/5", 95), ("readers/writers 50/50", 50)] {
        let ours = Ours {
            lock: locker.read_write(workload),
            inside: Arc::default(),
            readers,
        };
        let floor = Arc::new(RwLock::new(()));
        let (mut lockkit, mut tokio) = (Rounds::default(), Rounds::default());
        for _ in 0..report.pick(7, 5) {
            let ours = ours.clone();
            lockkit.run(&runtime, TASKS, length, move || ours.clone().turn())?;
            let floor = Arc::clone(&floor);
            tokio.run(&runtime, TASKS, length, move || {
                floor_turn(Arc::clone(&floor), readers)
            })?;
        }
        lockkit.tell(report, workload, "lockkit", WATCHED);
        tokio.tell(report, workload, "tokio::sync::RwLock", WATCHED);
    }
    Ok(runtime.block_on(locker.close())?)
}

#[derive(Clone)]
struct Ours {
    lock: ReadWriteLock,
    /// How many read; less than 0 while somebody writes.
    inside: Arc<AtomicI64>,
    readers: u32,
}

impl Ours {
    async fn turn(self) -> Result<Turn> {
        let writes = writes(self.readers);
        let began = Instant::now();
        let guard = match writes {
            true => self.lock.write().lock().await?,
            false => self.lock.read().lock().await?,
        };
        let waited = began.elapsed();
        let step = if writes { -1_000_000 } else { 1 };
        let before = self.inside.fetch_add(step, SeqCst);
        ensure!(
            if writes { before == 0 } else { before >= 0 },
            "a writer and somebody else"
        );
        yield_now().await;
        self.inside.fetch_sub(step, SeqCst);
        unlock(guard).await?;
        Ok(Turn {
            waited,
            watched: writes,
        })
    }
}

async fn floor_turn(lock: Arc<RwLock<()>>, readers: u32) -> Result<Turn> {
    let writes = writes(readers);
    let began = Instant::now();
    let waited = if writes {
        let _guard = lock.write().await;
        let waited = began.elapsed();
        yield_now().await;
        waited
    } else {
        let _guard = lock.read().await;
        let waited = began.elapsed();
        yield_now().await;
        waited
    };
    Ok(Turn {
        waited,
        watched: writes,
    })
}

fn writes(readers_in_a_hundred: u32) -> bool {
    rand::random_range(0..100) >= readers_in_a_hundred
}
