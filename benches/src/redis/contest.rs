//! One workload, many subjects, turn and turn about.

use anyhow::{Result, ensure};
use lockkit_servers::redis::RedisServer;

use super::driver::{Drivers, Outcome, Subject, Work};
use super::server::clear;
use crate::report::Report;
use crate::statistics::{median, ratios};

/// What all contests share.
#[derive(Debug)]
pub(super) struct Ring {
    pub(super) drivers: Drivers,
    pub(super) server: RedisServer,
    pub(super) rounds: usize,
    pub(super) seconds: u64,
}

/// A figure of one run.
pub(super) type Figure = fn(&Outcome) -> f64;

/// What came of a contest.
#[derive(Debug)]
pub(super) struct Standings(Vec<Standing>);

#[derive(Debug)]
struct Standing {
    subject: Subject,
    /// One of each round.
    outcomes: Vec<Outcome>,
    /// What a client asks of the server for one operation.
    requests: f64,
}

impl Ring {
    /// Lets the subjects that can run take turns, and reports what each did and cost. One that fails
    /// is left out; a bar that is held against it is missed.
    pub(super) fn contest(
        &self,
        report: &mut Report,
        workload: &'static str,
        work: Work,
        subjects: &[Subject],
    ) -> Standings {
        let standing = |subject: &Subject| Standing {
            subject: *subject,
            outcomes: vec![],
            requests: f64::NAN,
        };
        let subjects = subjects
            .iter()
            .filter(|subject| self.drivers.has(**subject));
        let mut standings: Vec<Standing> = subjects.map(standing).collect();
        for round in 1..=self.rounds {
            standings.retain_mut(|standing| {
                let name = standing.subject.name();
                let ran = self.run(standing, work);
                match &ran {
                    Ok(rate) => eprintln!("{workload}, round {round}, {name}: {rate:.0}/s"),
                    Err(error) => eprintln!("{workload}: {name} is left out: {error:#}"),
                }
                ran.is_ok()
            });
        }
        let short = Work { seconds: 1, ..work };
        for standing in &mut standings {
            match self.census(standing.subject, short) {
                Ok(requests) => standing.requests = requests,
                Err(error) => eprintln!("{workload}: {}: {error:#}", standing.subject.name()),
            }
            standing.tell(report, workload, work);
        }
        Standings(standings)
    }

    /// One round of one subject; its rate.
    fn run(&self, standing: &mut Standing, work: Work) -> Result<f64> {
        clear(&self.server)?;
        let servers = [&self.server];
        let outcome = self
            .drivers
            .run(standing.subject, work, &servers, &servers)?;
        ensure!(outcome.said.ops > 0.0, "nothing was done");
        let rate = outcome.said.ops_s;
        standing.outcomes.push(outcome);
        Ok(rate)
    }

    fn census(&self, subject: Subject, work: Work) -> Result<f64> {
        clear(&self.server)?;
        self.drivers.census(subject, work, &self.server)
    }

    /// What a driver is told.
    pub(super) const fn work(&self, workload: &'static str, clients: usize, tasks: usize) -> Work {
        Work {
            workload,
            clients,
            tasks,
            seconds: self.seconds,
        }
    }
}

impl Standings {
    /// The median of a subject's figure.
    pub(super) fn median(&self, subject: Subject, figure: Figure) -> f64 {
        median(&self.column(subject, figure))
    }

    /// The median over the rounds of what one has to what the other has. Not a number if one of
    /// them did not run.
    pub(super) fn ratio(&self, one: Subject, other: Subject, figure: Figure) -> f64 {
        median(&ratios(
            &self.column(one, figure),
            &self.column(other, figure),
        ))
    }

    /// The one of these with the highest median.
    pub(super) fn best(&self, subjects: &[Subject], figure: Figure) -> Option<Subject> {
        let ran = subjects
            .iter()
            .copied()
            .filter(|subject| self.ran(*subject));
        ran.max_by(|a, b| self.median(*a, figure).total_cmp(&self.median(*b, figure)))
    }

    /// What a client asks of the server for one operation.
    pub(super) fn requests(&self, subject: Subject) -> f64 {
        self.of(subject)
            .map_or(f64::NAN, |standing| standing.requests)
    }

    pub(super) fn ran(&self, subject: Subject) -> bool {
        self.of(subject).is_some()
    }

    fn of(&self, subject: Subject) -> Option<&Standing> {
        self.0.iter().find(|standing| standing.subject == subject)
    }

    fn column(&self, subject: Subject, figure: Figure) -> Vec<f64> {
        let outcomes = self.of(subject).map(|standing| &standing.outcomes);
        outcomes.into_iter().flatten().map(figure).collect()
    }
}

impl Standing {
    fn tell(&self, report: &mut Report, workload: &'static str, work: Work) {
        let subject = self.subject.name_with(&self.outcomes[0].said.version);
        let mut row = |metric, figure: Figure| {
            let samples: Vec<f64> = self.outcomes.iter().map(figure).collect();
            report.row(workload, &subject, metric, &samples);
        };
        row(("rate", "1/s"), |run| run.said.ops_s);
        row(("p50", "us"), |run| run.said.p50_us);
        row(("p99", "us"), |run| run.said.p99_us);
        row(("max", "us"), |run| run.said.max_us);
        if work.workload == "contend" {
            row(("mean", "us"), |run| run.said.mean_us);
            row(("Jain", "0..1"), |run| run.said.jain);
            // Only the Rust driver counts it.
            if self.outcomes.iter().all(|run| run.said.overtaken.is_some()) {
                row(("overtaken", "times"), |run| {
                    run.said.overtaken.unwrap_or_default()
                });
            }
        }
        row(("commands", "/op"), |run| run.spent.commands / run.said.ops);
        row(("server CPU", "us/op"), |run| {
            run.spent.cpu_us / run.said.ops
        });
        row(("client CPU", "us/op"), |run| {
            run.client_cpu_us / run.said.ops
        });
        row(("bytes", "/op"), |run| run.spent.bytes / run.said.ops);
        report.row(workload, &subject, ("requests", "/op"), &[self.requests]);
        if self.subject.is_lockkit() {
            let wrong = |run: &Outcome| run.said.violations + run.said.errors;
            let wrong = self.outcomes.iter().map(wrong).sum();
            report.bar(workload, ("violations and errors", ""), wrong, 0.0);
        }
    }
}
