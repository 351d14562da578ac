//! A quorum of independent servers, all well, one stalled, one gone.

use anyhow::Result;
use lockkit_servers::redis::RedisServer;

use super::contest::Ring;
use super::driver::{Outcome, Subject};
use crate::report::Report;
use crate::statistics::{median, ratios};

const NODES: usize = 5;
const HEALTHY: &str = "RedLock, 5 nodes";
const STALLED: &str = "RedLock, 1 stalled";
const REFUSED: &str = "RedLock, 1 refused";
const SUBJECTS: [Subject; 2] = [Subject::Lockkit, Subject::Rslock];

pub(super) fn measure(ring: &Ring, report: &mut Report) -> Result<()> {
    let mut found = [const { [const { Vec::new() }; 3] }; SUBJECTS.len()];
    for _ in 0..ring.rounds {
        for (subject, runs) in SUBJECTS.into_iter().zip(&mut found) {
            for (runs, outcome) in runs.iter_mut().zip(round(ring, subject)?) {
                runs.push(outcome);
            }
        }
    }
    for (subject, runs) in SUBJECTS.into_iter().zip(&found) {
        for (workload, outcomes) in [HEALTHY, STALLED, REFUSED].into_iter().zip(runs) {
            tell(report, workload, subject, outcomes);
        }
    }
    let p50 = |runs: &Vec<Outcome>| runs.iter().map(|run| run.said.p50_us).collect::<Vec<_>>();
    let [healthy, stalled, refused] = found[0].each_ref().map(p50);
    for (workload, other) in [(STALLED, stalled), (REFUSED, refused)] {
        let ratio = median(&ratios(&other, &healthy));
        report.bar(workload, ("p50 to the healthy one", "x"), ratio, 1.2);
    }
    Ok(())
}

/// One run in each state of the nodes, which are new.
fn round(ring: &Ring, subject: Subject) -> Result<[Outcome; 3]> {
    let nodes = (0..NODES).map(|_| RedisServer::start());
    let mut nodes = nodes.collect::<Result<Vec<_>>>()?;
    let work = ring.work("pair", 1, 1);
    let run = |nodes: &[RedisServer]| {
        let all: Vec<&RedisServer> = nodes.iter().collect();
        // The last one may be unable to answer.
        ring.drivers.run(subject, work, &all, &all[1..])
    };
    let healthy = run(&nodes)?;
    nodes[0].pause()?;
    let stalled = run(&nodes)?;
    nodes[0].resume()?;
    nodes[0].kill()?;
    let refused = run(&nodes)?;
    Ok([healthy, stalled, refused])
}

fn tell(report: &mut Report, workload: &'static str, subject: Subject, outcomes: &[Outcome]) {
    let named = subject.name_with(&outcomes[0].said.version);
    let mut row = |metric, figure: fn(&Outcome) -> f64| {
        let samples: Vec<f64> = outcomes.iter().map(figure).collect();
        report.row(workload, &named, metric, &samples);
    };
    row(("p50", "us"), |run| run.said.p50_us);
    row(("p99", "us"), |run| run.said.p99_us);
    row(("max", "us"), |run| run.said.max_us);
    row(("errors", "/op"), |run| run.said.errors / run.said.ops);
    row(("commands, 4 nodes", "/op"), |run| {
        run.spent.commands / run.said.ops
    });
    row(("bytes, 4 nodes", "/op"), |run| {
        run.spent.bytes / run.said.ops
    });
}
