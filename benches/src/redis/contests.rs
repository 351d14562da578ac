//! What Redis locks are compared in, and the bars.

use super::contest::{Figure, Ring};
use super::driver::Subject;
use crate::report::Report;

const RATE: Figure = |run| run.said.ops_s;
const P50: Figure = |run| run.said.p50_us;
/// Those that ask again and again.
const POLLERS: [Subject; 3] = [Subject::Rslock, Subject::Rlock, Subject::Redsync];

pub(super) fn measure(ring: &Ring, report: &mut Report) {
    pair(ring, report);
    own_keys(ring, report);
    one_lock(ring, report);
    one_client(ring, report);
    busy(ring, report);
}

/// Lock and unlock with nobody else about.
fn pair(ring: &Ring, report: &mut Report) {
    const WORKLOAD: &str = "pair";
    let subjects = [
        Subject::Floor,
        Subject::Lockkit,
        Subject::Rslock,
        Subject::Rlock,
        Subject::Redsync,
        Subject::Redisson,
        Subject::RedissonFair,
    ];
    let work = ring.work("pair", 1, 1);
    let standings = ring.contest(report, WORKLOAD, work, &subjects);
    let ratio = standings.ratio(Subject::Lockkit, Subject::Floor, P50);
    report.bar(WORKLOAD, ("p50 to the floor's", "x"), ratio, 1.1);
}

/// Many tasks of one client, each with a lock of its own.
fn own_keys(ring: &Ring, report: &mut Report) {
    const WORKLOAD: &str = "64 tasks, own keys";
    let peers = [
        Subject::Rslock,
        Subject::Rlock,
        Subject::Redsync,
        Subject::Redisson,
        Subject::RedissonFair,
    ];
    let subjects = [&[Subject::Floor, Subject::Lockkit], &peers[..]].concat();
    let work = ring.work("distinct", 1, 64);
    let standings = ring.contest(report, WORKLOAD, work, &subjects);
    let ratio = standings.ratio(Subject::Lockkit, Subject::Floor, RATE);
    report.bar_at_least(WORKLOAD, ("rate to the floor's", "x"), ratio, 0.7);
    if let Some(best) = standings.best(&peers, RATE) {
        let ratio = standings.ratio(Subject::Lockkit, best, RATE);
        report.bar_at_least(WORKLOAD, ("rate to the best peer's", "x"), ratio, 1.0);
    }
}

/// All fight for one lock, as if from 16 processes.
fn one_lock(ring: &Ring, report: &mut Report) {
    const WORKLOAD: &str = "one lock, 16 x 4";
    let subjects = [
        &[Subject::Lockkit, Subject::LockkitFair],
        &POLLERS[..],
        &[Subject::Redisson, Subject::RedissonFair],
    ]
    .concat();
    let work = ring.work("contend", 16, 4);
    let standings = ring.contest(report, WORKLOAD, work, &subjects);
    for (redisson, what) in [
        (Subject::Redisson, "rate to Redisson's"),
        (Subject::RedissonFair, "rate to fair Redisson's"),
    ] {
        if standings.ran(redisson) {
            let ratio = standings.ratio(Subject::Lockkit, redisson, RATE);
            report.bar_at_least(WORKLOAD, (what, "x"), ratio, 25.0);
        }
    }
    if let Some(best) = standings.best(&POLLERS, RATE) {
        let ratio = standings.ratio(Subject::Lockkit, best, RATE);
        report.bar_at_least(WORKLOAD, ("rate to the best poller's", "x"), ratio, 1.1);
    }
    for (subject, spread, jain) in [
        (Subject::Lockkit, "p99 wait to mean wait", "Jain"),
        (
            Subject::LockkitFair,
            "fair: p99 wait to mean wait",
            "fair: Jain",
        ),
    ] {
        let value = standings.median(subject, |run| run.said.p99_us / run.said.mean_us);
        report.bar(WORKLOAD, (spread, "x"), value, 2.0);
        let value = standings.median(subject, |run| run.said.jain);
        report.bar_at_least(WORKLOAD, (jain, "0..1"), value, 0.99);
    }
    report.bar(
        WORKLOAD,
        ("requests", "/op"),
        standings.requests(Subject::Lockkit),
        2.2,
    );
}

/// The same with all tasks in one client.
fn one_client(ring: &Ring, report: &mut Report) {
    const WORKLOAD: &str = "one lock, 1 x 64";
    let subjects = [
        &[Subject::Lockkit, Subject::LockkitFair],
        &POLLERS[..],
        &[Subject::Redisson, Subject::RedissonFair],
    ]
    .concat();
    let work = ring.work("contend", 1, 64);
    let standings = ring.contest(report, WORKLOAD, work, &subjects);
    let ratio = standings.ratio(Subject::Lockkit, Subject::Rslock, RATE);
    report.bar_at_least(WORKLOAD, ("rate to rslock's", "x"), ratio, 1.3);
}

/// Trying a lock that somebody else holds.
fn busy(ring: &Ring, report: &mut Report) {
    const WORKLOAD: &str = "failing try_lock";
    let subjects = [
        Subject::Floor,
        Subject::Lockkit,
        Subject::Rslock,
        Subject::Rlock,
        Subject::Redsync,
        Subject::Redisson,
    ];
    let work = ring.work("tryheld", 1, 1);
    let standings = ring.contest(report, WORKLOAD, work, &subjects);
    let ratio = standings.ratio(Subject::Lockkit, Subject::Floor, P50);
    report.bar(WORKLOAD, ("p50 to the floor's", "x"), ratio, 1.1);
    report.bar(
        WORKLOAD,
        ("requests", "/op"),
        standings.requests(Subject::Lockkit),
        1.01,
    );
}
