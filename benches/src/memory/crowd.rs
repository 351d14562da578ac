//! Tasks that do one thing again and again, side by side, for a while.

use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::report::Report;
use crate::statistics::jain;

/// One turn of one task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// How long it waited.
    pub(super) waited: Duration,
    /// Whether it is of those whose worst wait is reported.
    pub(super) watched: bool,
}

/// What one round has found.
#[derive(Clone, Copy, Debug)]
struct Round {
    per_second: f64,
    worst_wait_ms: f64,
    worst_watched_ms: f64,
    jain: f64,
}

/// The rounds of one subject.
#[derive(Debug, Default)]
pub(super) struct Rounds(Vec<Round>);

impl Rounds {
    /// Lets `tasks` tasks take turns for `length`.
    pub(super) fn run<F>(
        &mut self,
        runtime: &Runtime,
        tasks: usize,
        length: Duration,
        turn: impl Fn() -> F + Clone + Send + 'static,
    ) -> Result<()>
    where
        F: Future<Output = Result<Turn>> + Send + 'static,
    {
        let started = Instant::now();
        let done = runtime.block_on(async {
            let mut running = JoinSet::new();
            for _ in 0..tasks {
                running.spawn(take_turns(started + length, turn.clone()));
            }
            let done = running.join_all().await;
            done.into_iter().collect::<Result<Vec<_>>>()
        })?;
        let longest = |of: fn(&Share) -> Duration| {
            let longest = done.iter().map(of).max().unwrap_or_default();
            longest.as_secs_f64() * 1e3
        };
        let turns: Vec<f64> = done.iter().map(|share| f64::from(share.turns)).collect();
        self.0.push(Round {
            per_second: turns.iter().sum::<f64>() / started.elapsed().as_secs_f64(),
            worst_wait_ms: longest(|share| share.worst),
            worst_watched_ms: longest(|share| share.worst_watched),
            jain: jain(&turns),
        });
        Ok(())
    }

    /// Reports throughput, the worst wait, fairness, and the worst wait of those who are `watched`.
    pub(super) fn tell(
        &self,
        report: &mut Report,
        workload: &'static str,
        subject: &'static str,
        watched: Option<&'static str>,
    ) {
        let column = |of: fn(&Round) -> f64| self.0.iter().map(of).collect::<Vec<_>>();
        let mut row = |metric, samples: Vec<f64>| {
            report.row(workload, subject, metric, &samples);
        };
        row(("throughput", "1/s"), column(|round| round.per_second));
        row(("worst wait", "ms"), column(|round| round.worst_wait_ms));
        if let Some(watched) = watched {
            row((watched, "ms"), column(|round| round.worst_watched_ms));
        }
        row(("fairness (Jain)", "0..1"), column(|round| round.jain));
    }
}

/// What one task has done.
#[derive(Debug, Default)]
struct Share {
    turns: u32,
    worst: Duration,
    worst_watched: Duration,
}

async fn take_turns<F>(end: Instant, turn: impl Fn() -> F) -> Result<Share>
where
    F: Future<Output = Result<Turn>>,
{
    let mut share = Share::default();
    while Instant::now() < end {
        let Turn { waited, watched } = turn().await?;
        share.turns += 1;
        share.worst = share.worst.max(waited);
        if watched {
            share.worst_watched = share.worst_watched.max(waited);
        }
    }
    Ok(share)
}
