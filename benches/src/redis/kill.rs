//! A holder that is killed while 500 wait.

use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Result, ensure};

use super::contest::Ring;
use super::driver::{Subject, Work};
use super::server::clear;
use crate::peer::Peer;
use crate::report::Report;

const WORKLOAD: &str = "kill -9, 500 waiting";
const TTL: Duration = Duration::from_secs(2);
/// By then those who wait have gone to sleep over it, and the holder has renewed.
const SETTLED: Duration = Duration::from_millis(1500);
/// Who is let in stays for longer than this, so nobody else may come in meanwhile.
const ALONE: Duration = Duration::from_millis(200);

pub(super) fn measure(ring: &Ring, report: &mut Report) -> Result<()> {
    let subjects = [Subject::Lockkit, Subject::Rslock, Subject::Rlock];
    let mut found = [const { Vec::new() }; 3];
    for _ in 0..ring.rounds {
        for (subject, found) in subjects.into_iter().zip(&mut found) {
            clear(&ring.server)?;
            found.push(round(ring, subject, report.pick(500, 50))?);
        }
    }
    for (subject, found) in subjects.into_iter().zip(&found) {
        let (millis, grants): (Vec<f64>, Vec<f64>) = found.iter().copied().unzip();
        report.row(
            WORKLOAD,
            subject.name(),
            ("kill to next holder", "ms"),
            &millis,
        );
        report.row(WORKLOAD, subject.name(), ("holders at once", ""), &grants);
        if subject == Subject::Lockkit {
            let most = |figures: &[f64]| figures.iter().copied().fold(0.0, f64::max);
            let bar = TTL + Duration::from_millis(100);
            let what = ("kill to next holder, slowest", "ms");
            report.bar(WORKLOAD, what, most(&millis), bar.as_secs_f64() * 1e3);
            report.bar(WORKLOAD, ("holders at once", ""), most(&grants), 1.0);
        }
    }
    Ok(())
}

/// Kills a holder; milliseconds until the next one is in, and how many were in before that one
/// left.
fn round(ring: &Ring, subject: Subject, waiting: usize) -> Result<(f64, f64)> {
    let start = |workload, clients, tasks| {
        let work = Work {
            workload,
            clients,
            tasks,
            seconds: 0,
        };
        let mut command = ring.drivers.command(subject, work, &[&ring.server])?;
        Peer::spawn(command.args(["--ttl", &TTL.as_secs().to_string()]))
    };
    let mut holder = start("hold", 1, 1)?;
    ensure!(holder.hear()? == "held", "the holder does not hold");
    let waiters = start("wait", 10, waiting / 10)?;
    ensure!(waiters.hear()? == "waiting", "the waiters do not wait");
    sleep(SETTLED);
    let killed = SystemTime::now().duration_since(UNIX_EPOCH)?;
    holder.kill()?;
    let first = waiters.hear()?.parse()?;
    let mut grants = 1.0;
    sleep(ALONE);
    while waiters.heard().is_some() {
        grants += 1.0;
    }
    let took = Duration::from_nanos(first).saturating_sub(killed);
    Ok((took.as_secs_f64() * 1e3, grants))
}
