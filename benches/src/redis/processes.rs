//! One lock and many processes.

use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;

use super::contest::Ring;
use super::counters::Counters;
use super::driver::{Said, Subject, hear};
use super::server::clear;
use crate::peer::Peer;
use crate::report::Report;
use crate::statistics::jain;

const WORKLOAD: &str = "one lock, 100 x 1 x 5";
const TASKS: usize = 5;

/// What one round has found.
struct Round {
    rate: f64,
    worst_ms: f64,
    jain: f64,
    spent: Counters,
    ops: f64,
}

pub(super) fn measure(ring: &Ring, report: &mut Report) -> Result<()> {
    let processes = report.pick(100, 10);
    let mut rounds = Vec::new();
    for _ in 0..ring.rounds {
        clear(&ring.server)?;
        rounds.push(round(ring, processes)?);
    }
    let mut row = |metric, figure: fn(&Round) -> f64| {
        let samples: Vec<f64> = rounds.iter().map(figure).collect();
        report.row(WORKLOAD, "lockkit", metric, &samples)
    };
    let rate = row(("rate", "1/s"), |round| round.rate);
    row(("max", "ms"), |round| round.worst_ms);
    row(("Jain of processes", "0..1"), |round| round.jain);
    row(("commands", "/op"), |round| {
        round.spent.commands / round.ops
    });
    row(("server CPU", "us/op"), |round| {
        round.spent.cpu_us / round.ops
    });
    row(("bytes", "/op"), |round| round.spent.bytes / round.ops);
    report.bar_at_least(WORKLOAD, ("rate", "1/s"), rate, 10_000.0);
    Ok(())
}

/// Lets the processes fight until the end of the counted time, which is the same for all.
fn round(ring: &Ring, processes: usize) -> Result<Round> {
    // By then all have started and connected.
    let begin = SystemTime::now()
        + Duration::from_secs(2)
        + Duration::from_millis(30) * u32::try_from(processes)?;
    let nanos = begin.duration_since(UNIX_EPOCH)?.as_nanos().to_string();
    let work = ring.work("contend", 1, TASKS);
    let mut peers = Vec::with_capacity(processes);
    for _ in 0..processes {
        let mut command = ring
            .drivers
            .command(Subject::Lockkit, work, &[&ring.server])?;
        // Its marks are of no use: this process knows the time too.
        command
            .args(["--begin", &nanos])
            .stderr(std::process::Stdio::null());
        peers.push(Peer::spawn(&mut command)?);
    }
    sleep(begin.duration_since(SystemTime::now())?);
    let before = Counters::read(&[&ring.server])?;
    sleep(Duration::from_secs(ring.seconds));
    let spent = Counters::read(&[&ring.server])? - before;
    let said = peers.iter().map(|peer| hear(peer, 0, || Ok(())));
    let said = said.collect::<Result<Vec<Said>>>()?;
    let ops: Vec<f64> = said.iter().map(|said| said.ops).collect();
    Ok(Round {
        rate: said.iter().map(|said| said.ops_s).sum(),
        worst_ms: said.iter().map(|said| said.max_us).fold(0.0, f64::max) / 1e3,
        jain: jain(&ops),
        spent,
        ops: ops.iter().sum(),
    })
}
