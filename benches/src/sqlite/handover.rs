//! From one process to another.

use std::thread::sleep;
use std::time::Duration;

use anyhow::Result;

use super::files::Files;
use crate::clock::micros_between;
use crate::contender::{Contender, Subject, Target};
use crate::report::Report;

const WORKLOAD: &str = "hand-over";
const LATENCY: (&str, &str) = ("unlock to lock held", "us");
/// By then a process that was told to take the lock has gone to sleep over it.
const SETTLED: Duration = Duration::from_millis(15);

pub(super) fn measure(report: &mut Report) -> Result<()> {
    let files = Files::new(report)?;
    let [lockkit, flock] = files.targets()?;
    let fair = Target {
        subject: Subject::Fair,
        name: "fair".to_owned(),
        ..lockkit.clone()
    };
    let mut ours = Pair::start(&lockkit)?;
    let mut in_order = Pair::start(&fair)?;
    let mut theirs = Pair::start(&flock)?;
    let (mut lockkit, mut fair, mut flock) = (vec![], vec![], vec![]);
    for _ in 0..report.pick(300, 20) {
        lockkit.push(ours.hand_over()?);
        fair.push(in_order.hand_over()?);
        flock.push(theirs.hand_over()?);
    }
    let median = report.row(WORKLOAD, "lockkit", LATENCY, &lockkit);
    report.row(WORKLOAD, "lockkit, fair", LATENCY, &fair);
    report.row(WORKLOAD, "flock(2)", LATENCY, &flock);
    report.bar(WORKLOAD, LATENCY, median, 1_000.0);
    Ok(())
}

/// Two processes: one holds, the other is idle.
struct Pair {
    holder: Contender,
    other: Contender,
}

impl Pair {
    fn start(target: &Target) -> Result<Self> {
        let mut holder = Contender::start(target)?;
        let other = Contender::start(target)?;
        holder.take()?;
        holder.held()?;
        Ok(Self { holder, other })
    }

    /// Lets the other wait, then has it; microseconds from the call that releases to the return
    /// of the call that locks.
    fn hand_over(&mut self) -> Result<f64> {
        self.other.take()?;
        sleep(SETTLED);
        let released = self.holder.release()?;
        let held = self.other.held()?;
        std::mem::swap(&mut self.holder, &mut self.other);
        Ok(micros_between(released, held))
    }
}
