//! Many tasks and one lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use lockkit::{Locker, Memory, Mutex};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::guard::unlock;
use crate::report::Report;
use crate::statistics::jain;

/// What the tasks fight for.
#[derive(Clone)]
enum Contended {
    Lockkit(Mutex),
    Tokio(Arc<tokio::sync::Mutex<()>>),
}

/// What one round has found.
struct Round {
    nanos_each: f64,
    longest_wait_ms: f64,
    jain: f64,
}

pub(super) fn measure(report: &mut Report) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let locker = runtime.block_on(async { Locker::new(Memory::new()) })?;
    let subjects = [
        ("lockkit", Contended::Lockkit(locker.mutex("barging"))),
        (
            "lockkit, fair",
            Contended::Lockkit(locker.mutex("fair").fair()),
        ),
        ("tokio::sync::Mutex", Contended::Tokio(Arc::default())),
    ];
    let length = report.pick(Duration::from_millis(300), Duration::from_millis(50));
    for (workload, tasks) in [("hand-over, 4 tasks", 4), ("hand-over, 64 tasks", 64)] {
        let mut found = [const { Vec::new() }; 3];
        for _ in 0..report.pick(7, 5) {
            for (rounds, (_, contended)) in found.iter_mut().zip(&subjects) {
                rounds.push(round(&runtime, contended, tasks, length)?);
            }
        }
        for (rounds, (subject, _)) in found.iter().zip(&subjects) {
            let column = |of: fn(&Round) -> f64| rounds.iter().map(of).collect::<Vec<_>>();
            report.row(
                workload,
                subject,
                ("acquisition", "ns"),
                &column(|r| r.nanos_each),
            );
            report.row(
                workload,
                subject,
                ("longest wait", "ms"),
                &column(|r| r.longest_wait_ms),
            );
            report.row(
                workload,
                subject,
                ("fairness (Jain)", "0..1"),
                &column(|r| r.jain),
            );
        }
    }
    Ok(runtime.block_on(locker.close())?)
}

fn round(
    runtime: &Runtime,
    contended: &Contended,
    tasks: usize,
    length: Duration,
) -> Result<Round> {
    let inside = Arc::new(AtomicBool::new(false));
    let started = Instant::now();
    let shares = runtime.block_on(async {
        let mut running = JoinSet::new();
        for _ in 0..tasks {
            running.spawn(fight(
                contended.clone(),
                Arc::clone(&inside),
                started + length,
            ));
        }
        running
            .join_all()
            .await
            .into_iter()
            .collect::<Result<Vec<_>>>()
    })?;
    let counts: Vec<f64> = shares.iter().map(|(count, _)| f64::from(*count)).collect();
    let longest = shares
        .iter()
        .map(|(_, longest)| *longest)
        .max()
        .unwrap_or_default();
    Ok(Round {
        nanos_each: started.elapsed().as_secs_f64() * 1e9 / counts.iter().sum::<f64>(),
        longest_wait_ms: longest.as_secs_f64() * 1e3,
        jain: jain(&counts),
    })
}

/// Locks, looks whether anybody else is inside, and unlocks, until the end; how often, and the
/// longest wait.
async fn fight(
    contended: Contended,
    inside: Arc<AtomicBool>,
    end: Instant,
) -> Result<(u32, Duration)> {
    let (mut count, mut longest) = (0, Duration::ZERO);
    let mut before = Instant::now();
    while before < end {
        match &contended {
            Contended::Lockkit(mutex) => {
                let guard = mutex.lock().await?;
                longest = longest.max(before.elapsed());
                alone(&inside)?;
                unlock(guard).await?;
            }
            Contended::Tokio(mutex) => {
                let guard = mutex.lock().await;
                longest = longest.max(before.elapsed());
                alone(&inside)?;
                drop(guard);
            }
        }
        count += 1;
        before = Instant::now();
    }
    Ok((count, longest))
}

fn alone(inside: &AtomicBool) -> Result<()> {
    ensure!(!inside.swap(true, Ordering::AcqRel), "two holders at once");
    inside.store(false, Ordering::Release);
    Ok(())
}
