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

pub(super) fn measure(ring: &Ring, report: &mut Report) -> Result<()> {
    let theirs = Runs::of(ring, Subject::Rslock);
    let ours = Runs::of(ring, Subject::Lockkit);
    theirs?.tell(report, Subject::Rslock);
    let ours = ours?;
    ours.tell(report, Subject::Lockkit);
    let [healthy, stalled, refused] = ours.0.each_ref().map(|runs| p50(runs));
    for (workload, other) in [(STALLED, stalled), (REFUSED, refused)] {
        let ratio = median(&ratios(&other, &healthy));
        report.bar(workload, ("p50 to the healthy one", "x"), ratio, 1.2);
    }
    Ok(())
}

/// The runs in each state of the nodes.
struct Runs([Vec<Outcome>; 3]);

impl Runs {
    /// Each round on nodes of its own.
    fn of(ring: &Ring, subject: Subject) -> Result<Self> {
        let mut runs = Self([const { Vec::new() }; 3]);
        for _ in 0..ring.rounds {
            let nodes = (0..NODES).map(|_| RedisServer::start());
            let mut nodes = nodes.collect::<Result<Vec<_>>>()?;
            runs.0[0].push(run(ring, subject, &nodes)?);
            nodes[0].pause()?;
            runs.0[1].push(run(ring, subject, &nodes)?);
            nodes[0].resume()?;
            nodes[0].kill()?;
            runs.0[2].push(run(ring, subject, &nodes)?);
        }
        Ok(runs)
    }

    fn tell(&self, report: &mut Report, subject: Subject) {
        for (workload, runs) in [HEALTHY, STALLED, REFUSED].into_iter().zip(&self.0) {
            let subject = subject.name_with(&runs[0].said.version);
            let mut row = |metric, figure: fn(&Outcome) -> f64| {
                let samples: Vec<f64> = runs.iter().map(figure).collect();
                report.row(workload, &subject, metric, &samples);
            };
            row(("p50", "us"), |run| run.said.p50_us);
            row(("p99", "us"), |run| run.said.p99_us);
            row(("max", "us"), |run| run.said.max_us);
            row(("errors", "/op"), |run| run.said.errors / run.said.ops);
            // Of the four nodes that answer in every state.
            row(("commands", "/op"), |run| run.spent.commands / run.said.ops);
            row(("server CPU", "us/op"), |run| {
                run.spent.cpu_us / run.said.ops
            });
            row(("client CPU", "us/op"), |run| {
                run.client_cpu_us / run.said.ops
            });
            row(("bytes", "/op"), |run| run.spent.bytes / run.said.ops);
        }
    }
}

/// Locks and unlocks, one at a time. The first node may be unable to tell what it has spent.
fn run(ring: &Ring, subject: Subject, nodes: &[RedisServer]) -> Result<Outcome> {
    let nodes: Vec<&RedisServer> = nodes.iter().collect();
    let work = ring.work("pair", 1, 1);
    ring.drivers.run(subject, work, &nodes, &nodes[1..])
}

fn p50(runs: &[Outcome]) -> Vec<f64> {
    runs.iter().map(|run| run.said.p50_us).collect()
}
