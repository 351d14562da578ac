//! Signals, loss and sudden death.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::time::{Duration, Instant};

use rustix::process::Signal;
use support::{PATIENCE, Place, Running, kill, runs, until};

/// Says its process id, then runs until it is ended.
const SLEEP: &str = "echo $$; exec sleep 1000";
/// A shell that says the id of a grandchild and waits for it.
const FAMILY: &str = "sleep 1000 & echo $!; wait";

#[test]
fn term_is_passed_on_and_the_code_of_cmd_kept() {
    let place = Place::new();
    let script = "trap 'exit 9' TERM; echo in; while :; do sleep 0.05; done";
    let running = place.start(["run", "x", "--", "sh", "-c", script]);
    running.signal(Signal::TERM);
    assert_eq!(running.end().0.code(), Some(9));
    assert!(place.ls().is_empty());
}

#[test]
fn usr1_and_hup_reach_cmd() {
    let place = Place::new();
    let script = "trap 'echo one' USR1; trap 'echo hup' HUP; echo in; while :; do sleep 0.05; done";
    let mut running = place.start(["run", "x", "--", "sh", "-c", script]);
    running.signal(Signal::USR1);
    assert_eq!(running.line(), "one");
    running.signal(Signal::HUP);
    assert_eq!(running.line(), "hup");
}

#[test]
fn the_whole_group_is_signalled() {
    let place = Place::new();
    let running = place.start(["run", "x", "--", "sh", "-c", FAMILY]);
    let grandchild = running.first_line.clone();
    running.signal(Signal::TERM);
    assert_eq!(running.end().0.code(), Some(143));
    until("the grandchild has ended", || !runs(&grandchild));
}

#[test]
fn a_signal_while_waiting_withdraws() {
    let place = Place::new();
    let _holder = place.hold("x");
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let waiter = Running::spawn(place.lockkit(["run", "x", "--", "touch", "ran"]));
        place.until_waiters(1);
        waiter.signal(signal);
        let (status, said) = waiter.end();
        assert_eq!(status.code(), Some(code), "{said}");
        assert!(said.contains("before it had the lock"), "{said}");
        assert_eq!(place.ls()[0]["waiters"].as_array().unwrap().len(), 0);
    }
    assert!(!place.path("ran").exists());
}

#[test]
fn what_was_ignored_stays_ignored() {
    let place = Place::new();
    let program = assert_cmd::cargo::cargo_bin!("lockkit").display();
    let script = format!("trap '' HUP; exec {program} run x -- sh -c 'echo in; read _; exit 5'");
    let mut command = std::process::Command::new("sh");
    command
        .args(["-c", &script])
        .env("LOCKKIT_URL", place.url());
    let mut running = Running::spawn(command);
    assert_eq!(running.line(), "in");
    running.signal(Signal::HUP);
    assert_eq!(running.finish().code(), Some(5));
}

#[test]
fn a_lost_lock_ends_the_shell_and_its_children() {
    let place = Place::new();
    let running = place.start(["run", "x", "--", "sh", "-c", FAMILY]);
    let grandchild = running.first_line.clone();
    let broken = place.output(["break", "x"]);
    assert!(broken.status.success());
    assert!(support::text(&broken.stdout).starts_with("broke \"x\": sh ("));
    let (status, said) = running.end();
    assert_eq!(status.code(), Some(79), "{said}");
    assert!(said.starts_with("lockkit: lost \"x\" after "), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(!runs(&grandchild), "gone before lockkit is");
}

#[test]
fn a_lost_lock_is_79_even_if_cmd_ends_well() {
    let place = Place::new();
    let script = "trap 'exit 0' TERM; echo in; while :; do sleep 0.05; done";
    let running = place.start(["run", "x", "--", "sh", "-c", script]);
    assert_eq!(place.status(["break", "x", "--yes"]), 0);
    assert_eq!(running.end().0.code(), Some(79));

    let running = place.start([
        "run",
        "--lost-exit-code",
        "99",
        "x",
        "--",
        "sh",
        "-c",
        script,
    ]);
    assert_eq!(place.status(["break", "x", "--yes"]), 0);
    assert_eq!(running.end().0.code(), Some(99));
}

#[test]
fn cmd_that_ignores_term_is_killed_after_the_grace() {
    let place = Place::new();
    let script = "trap '' TERM; echo in; while :; do sleep 0.05; done";
    let running = place.start(["run", "-k", "300ms", "x", "--", "sh", "-c", script]);
    let started = Instant::now();
    assert_eq!(place.status(["break", "x"]), 0);
    assert_eq!(running.end().0.code(), Some(79));
    assert!(started.elapsed() >= Duration::from_millis(300));
}

#[test]
fn a_grandchild_that_ignores_term_is_killed_after_the_grace() {
    let place = Place::new();
    let script = "sh -c 'trap \"\" TERM; echo $$; while :; do sleep 0.05; done' & wait";
    let running = place.start(["run", "-k", "300ms", "x", "--", "sh", "-c", script]);
    let grandchild = running.first_line.clone();
    assert_eq!(place.status(["break", "x"]), 0);
    assert_eq!(running.end().0.code(), Some(79));
    until("the grandchild has ended", || !runs(&grandchild));
}

#[test]
fn on_lost_warn_leaves_cmd_alone() {
    let place = Place::new();
    let running = place.start([
        "run",
        "--on-lost",
        "warn",
        "x",
        "--",
        "sh",
        "-c",
        "echo in; read _; exit 4",
    ]);
    assert_eq!(place.status(["break", "x"]), 0);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(running.finish().code(), Some(4));
}

#[test]
fn a_second_request_to_end_is_followed_by_kill() {
    let place = Place::new();
    let script = "trap '' INT; echo in; while :; do sleep 0.05; done";
    let running = place.start(["run", "-k", "200ms", "x", "--", "sh", "-c", script]);
    running.signal(Signal::INT);
    std::thread::sleep(Duration::from_millis(400));
    assert!(
        runs(&running.pid().to_string()),
        "one request is no reason to kill"
    );
    running.signal(Signal::INT);
    assert_eq!(running.end().0.code(), Some(137));
}

#[test]
fn a_stopped_lockkit_finds_that_it_lost() {
    let place = Place::new();
    let running = place.start(["run", "-t", "1s", "x", "--", "sh", "-c", SLEEP]);
    running.signal(Signal::STOP);
    let next = place.output(["run", "-w", "20s", "x", "--", "true"]);
    assert!(
        next.status.success(),
        "a stopped process goes by its lease: {next:?}"
    );
    running.signal(Signal::CONT);
    assert_eq!(running.end().0.code(), Some(79));
}

#[test]
fn killing_lockkit_kills_cmd_and_frees_the_lock() {
    let place = Place::new();
    let holder = place.start(["run", "-t", "10m", "x", "--", "sh", "-c", SLEEP]);
    let cmd = holder.first_line.clone();
    let waiter = Running::spawn(place.lockkit(["run", "x", "--", "true"]));
    place.until_waiters(1);
    let started = Instant::now();
    holder.signal(Signal::KILL);
    assert!(waiter.end().0.success());
    assert!(
        started.elapsed() < PATIENCE,
        "long before the lease of ten minutes"
    );
    until("CMD has ended", || !runs(&cmd));
}

#[test]
fn a_grandchild_that_survives_keeps_the_lock_until_it_ends() {
    let place = Place::new();
    let script = "sleep 1000 & echo $!; exec sleep 1000";
    let holder = place.start(["run", "-t", "10m", "x", "--", "sh", "-c", script]);
    let grandchild = holder.first_line.clone();
    holder.signal(Signal::KILL);
    assert_eq!(holder.end().0.code(), None);
    assert_eq!(place.status(["run", "-w", "1s", "x", "--", "true"]), 75);
    assert!(runs(&grandchild));
    let waiter = Running::spawn(place.lockkit(["run", "x", "--", "true"]));
    place.until_waiters(1);
    kill(&grandchild);
    assert!(waiter.end().0.success());
}

#[test]
fn what_cmd_leaves_behind_does_not_keep_the_lock() {
    let place = Place::new();
    let running = place.start([
        "run",
        "x",
        "--",
        "sh",
        "-c",
        "sleep 1000 >&- 2>&- & echo $!",
    ]);
    let left_behind = running.first_line.clone();
    assert!(running.end().0.success());
    assert_eq!(place.status(["run", "-n", "x", "--", "true"]), 0);
    kill(&left_behind);
}
