//! A holder that is killed while others wait.

use std::thread::sleep;
use std::time::Duration;

use anyhow::Result;

use super::files::Files;
use crate::clock::micros_between;
use crate::contender::{Contender, Target};
use crate::report::Report;

const WORKLOAD: &str = "kill -9, 8 waiting";
const LATENCY: (&str, &str) = ("kill to next holder", "ms");
const WAITING: usize = 8;
/// By then a process that was told to take the lock has gone to sleep over it.
const SETTLED: Duration = Duration::from_millis(50);

pub(super) fn measure(report: &mut Report) -> Result<()> {
    let files = Files::new(report)?;
    let [lockkit, flock] = files.targets()?;
    let mut ours = Queue::start(&lockkit)?;
    let mut theirs = Queue::start(&flock)?;
    let (mut lockkit, mut flock) = (vec![], vec![]);
    for _ in 0..report.pick(25, 5) {
        lockkit.push(ours.kill_holder()?);
        flock.push(theirs.kill_holder()?);
    }
    report.row(WORKLOAD, "lockkit", LATENCY, &lockkit);
    report.row(WORKLOAD, "flock(2)", LATENCY, &flock);
    let slowest = lockkit.iter().copied().fold(0.0, f64::max);
    report.bar(
        WORKLOAD,
        ("kill to next holder, slowest", "ms"),
        slowest,
        100.0,
    );
    Ok(())
}

/// One process that holds and eight that wait.
struct Queue {
    target: Target,
    holder: Contender,
    waiting: Vec<Contender>,
}

impl Queue {
    fn start(target: &Target) -> Result<Self> {
        let mut holder = Contender::start(target)?;
        holder.take()?;
        holder.held()?;
        let mut queue = Self {
            target: target.clone(),
            holder,
            waiting: Vec::new(),
        };
        for _ in 0..WAITING {
            queue.join()?;
        }
        Ok(queue)
    }

    fn join(&mut self) -> Result<()> {
        let mut contender = Contender::start(&self.target)?;
        contender.take()?;
        self.waiting.push(contender);
        Ok(())
    }

    /// Kills the holder; milliseconds until one of the others holds, which is the next to be
    /// killed.
    fn kill_holder(&mut self) -> Result<f64> {
        sleep(SETTLED);
        let killed = self.holder.kill()?;
        let (next, held) = self.next_holder()?;
        self.holder = self.waiting.swap_remove(next);
        self.join()?;
        Ok(micros_between(killed, held) / 1e3)
    }

    fn next_holder(&self) -> Result<(usize, u64)> {
        loop {
            for (i, contender) in self.waiting.iter().enumerate() {
                if let Some(held) = contender.holds()? {
                    return Ok((i, held));
                }
            }
            sleep(Duration::from_millis(1));
        }
    }
}
