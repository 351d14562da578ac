//! Every kind of lock under `run` and `acquire`.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::collections::BTreeSet;

use serde_json::Value;
use support::{Place, Running, text};

#[test]
fn readers_together_and_a_writer_alone() {
    let place = Place::new();
    let one = place.hold_as(&["--shared"], "x");
    let other = place.hold_as(&["--shared"], "x");
    assert_eq!(
        (&*one.first_line, &*other.first_line),
        ("shared,", "shared,")
    );
    let said = place.refused(&["run", "-n", "x", "--exclusive", "--", "true"], 75);
    assert!(
        said.starts_with("\"x\" is taken: held by sh (") && said.contains("(shared)"),
        "{said}"
    );
    assert_eq!(
        place.status(["run", "-n", "x", "--", "true"]),
        0,
        "a plain lock has names of its own"
    );

    let writer = Running::spawn(place.lockkit(["run", "x", "--exclusive", "--", "true"]));
    place.until_waiters(1);
    let said = place.refused(&["run", "-n", "x", "--shared", "--", "true"], 75);
    assert!(said.ends_with("; 1 in line"), "{said}");
    assert!(one.finish().success() && other.finish().success());
    assert!(writer.end().0.success());

    let writer = place.hold_as(&["--exclusive"], "x");
    assert_eq!(writer.first_line, "exclusive,");
    for mode in ["--shared", "--exclusive"] {
        place.refused(&["run", "-n", "x", mode, "--", "true"], 75);
    }
}

#[test]
fn a_reader_has_the_fence_of_the_last_writer() {
    let place = Place::new();
    let fence = |mode| {
        let args = ["run", "x", mode, "-c", "echo $LOCKKIT_FENCING_TOKEN"];
        let said = place.said(&args);
        said.trim().parse::<u64>().unwrap()
    };
    assert_eq!(fence("--shared"), 0);
    let written = fence("--exclusive");
    assert!(written > 0);
    assert_eq!(fence("--shared"), written);
    assert!(fence("--exclusive") > written);
}

#[test]
fn never_more_permits_than_there_are() {
    let place = Place::new();
    std::fs::create_dir(place.path("in")).unwrap();
    // Each permit is a file as long as it is held.
    let script = "
        for i in $1; do touch in/$$.$i; done
        ls in | wc -l >> seen
        sleep 0.05
        ls in | wc -l >> seen
        rm in/$$.*";
    let permits = ["1", "2", "1", "3", "1", "2", "1", "1", "2", "1", "3", "1"];
    let runs = permits.map(|count| {
        let each = &["1", "1 2", "1 2 3"][count.parse::<usize>().unwrap() - 1];
        let options = ["run", "x", "--permits", count, "--of", "4"];
        let cmd = ["--", "sh", "-c", script, "sh", each];
        Running::spawn(place.lockkit(options.iter().chain(&cmd)))
    });
    for run in runs {
        let (status, said) = run.end();
        assert!(status.success(), "{said}");
    }
    let seen = std::fs::read_to_string(place.path("seen")).unwrap();
    let seen: Vec<u32> = seen
        .lines()
        .map(|line| line.trim().parse().unwrap())
        .collect();
    assert_eq!(seen.len(), 2 * permits.len());
    assert!(seen.iter().all(|&count| count <= 4), "{seen:?}");
    assert!(place.ls().is_empty());
}

#[test]
fn permits_are_shared_out() {
    let place = Place::new();
    let two = place.hold_as(&["--permits", "2", "--of", "3"], "x");
    assert_eq!(two.first_line, "2 of 3,");
    let said = place.refused(
        &["run", "-n", "x", "--permits", "2", "--of", "3", "true"],
        75,
    );
    assert!(said.contains("(2 of 3)"), "{said}");
    assert_eq!(
        place.status(["run", "-n", "x", "--of", "3", "--", "true"]),
        0
    );

    let said = place.refused(&["run", "x", "--of", "4", "--", "true"], 78);
    assert_eq!(
        said,
        "\"x\" has 3 permits, not 4: write --of 3, or change it for all with `lockkit resize x \
         --permits 4`"
    );
    assert!(two.finish().success());
}

#[test]
fn any_segment_is_one_that_nobody_has() {
    let place = Place::new();
    let holders: Vec<_> = (0..3)
        .map(|_| place.hold_as(&["--any-of", "3"], "db"))
        .collect();
    let held: BTreeSet<_> = holders.iter().map(|run| run.first_line.as_str()).collect();
    let all = [
        "segment 0 of 3, 0",
        "segment 1 of 3, 1",
        "segment 2 of 3, 2",
    ];
    assert_eq!(held, BTreeSet::from(all));
    place.refused(&["run", "-n", "db", "--any-of", "3", "true"], 75);
    let said = place.refused(&["run", "-n", "db", "--any-of", "5", "true"], 78);
    assert!(
        said.contains("has 3 segments, not 5: write --any-of 3"),
        "{said}"
    );
}

#[test]
fn the_segment_of_a_key_is_always_the_same() {
    let place = Place::new();
    let alice = place.hold_as(&["--segment-of", "alice", "--of", "64"], "accounts");
    assert_eq!(alice.first_line, "segment 1 of 64, 1");
    let acquire = |key| {
        [
            "acquire",
            "-n",
            "accounts",
            "--of",
            "64",
            "--segment-of",
            key,
        ]
    };
    let said = place.refused(&acquire("alice"), 75);
    assert!(said.contains("(segment 1 of 64)"), "{said}");
    assert_eq!(place.status(acquire("bob")), 0, "another segment");
    let any = place.hold_as(&["--any-of", "64"], "accounts");
    assert_ne!(any.first_line, alice.first_line);
}

#[test]
fn a_nested_run_does_not_show_the_segment_around_it() {
    let place = Place::new();
    let lockkit = assert_cmd::cargo::cargo_bin!("lockkit").to_str().unwrap();
    let show = "echo $LOCKKIT_KEY ${LOCKKIT_SEGMENT-none} $LOCKKIT_MODE";
    let script = format!("{show}; {lockkit} run b -c '{show}'");
    let said = place.said(&["run", "a", "--any-of", "2", "-c", &script]);
    assert_eq!(said, "a 0 segment 0 of 2\nb none exclusive\n");
}

#[test]
fn every_kind_is_acquired_renewed_and_released() {
    let place = Place::new();
    for (options, kind, mode) in [
        (&["--shared"][..], "rw", "shared"),
        (&["--exclusive"], "rw", "exclusive"),
        (&["--permits", "2", "--of", "3"], "semaphore", "permits"),
        (&["--any-of", "3"], "segmented", "segment"),
        (&["--segment-of", "k", "--of", "3"], "segmented", "segment"),
        (&[], "mutex", "exclusive"),
    ] {
        let acquire = ["acquire", "-n", "x", "--format", "json"];
        let args: Vec<_> = acquire.iter().chain(options).copied().collect();
        let output = place.output(&args);
        let said = text(&output.stderr);
        assert!(output.status.success(), "{args:?}: {said}");
        let hold: Value = serde_json::from_slice(&output.stdout).unwrap();
        let field = |name: &str| hold[name].as_str().unwrap().to_owned();
        assert_eq!((&*field("kind"), &*field("mode")), (kind, mode));
        assert_eq!(hold["segment"].is_u64(), mode == "segment");
        let id = field("id");
        assert!(id.starts_with(&format!("{kind}/x.")), "{id}");
        assert_eq!(place.ls()[0]["holders"][0]["detached"], true);
        assert_eq!(place.status(["renew", &id, "--ttl", "10m"]), 0);
        assert_eq!(place.status(["release", &id]), 0);
        assert_eq!(place.status(["release", &id]), 79);
        assert!(place.ls().is_empty());
    }
}

#[test]
fn every_kind_waits_and_gives_up() {
    let place = Place::new();
    for options in [
        &["--exclusive"][..],
        &["--permits", "2", "--of", "2"],
        &["--any-of", "1"],
        &["--segment-of", "k", "--of", "1"],
        &["--fair"],
    ] {
        let holder = place.hold_as(options, "x");
        let cmd = ["x", "--", "true"];
        let late = ["run", "-w", "100ms"].iter().chain(options).chain(&cmd);
        let late = late.copied().collect::<Vec<_>>();
        let said = place.refused(&late, 75);
        assert!(
            said.starts_with("gave up waiting for \"x\" after 100ms: held by sh ("),
            "{said}"
        );
        assert!(!said.contains("in line"), "but for itself: {said}");
        place.until_waiters(0);
        let run = ["run"].iter().chain(options).chain(&cmd);
        let waiter = Running::spawn(place.lockkit(run));
        place.until_waiters(1);
        assert!(holder.finish().success());
        assert!(waiter.end().0.success());
    }
}

#[test]
fn a_killed_holder_gives_its_permits_back() {
    let place = Place::new();
    let holder = place.hold_as(&["-t", "10m", "--permits", "3", "--of", "3"], "x");
    let waiter = Running::spawn(place.lockkit(["run", "x", "--of", "3", "--", "true"]));
    place.until_waiters(1);
    holder.signal(rustix::process::Signal::KILL);
    assert!(
        waiter.end().0.success(),
        "long before the lease of ten minutes"
    );
}
