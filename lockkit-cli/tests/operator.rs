//! What an operator does: list, ask, break, resize.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::os::unix::process::ExitStatusExt as _;

use rustix::process::Signal;
use serde_json::Value;
use support::{Place, Running, text};

#[test]
fn ls_shows_how_each_is_held() {
    let place = Place::new();
    let _holders = [
        place.hold_as(&["--shared"], "a"),
        place.hold_as(&["--permits", "2", "--of", "5"], "b"),
        place.hold_as(&["--any-of", "8"], "c"),
        place.hold("d"),
    ];
    place.said(&["acquire", "e", "--exclusive"]);
    let waiting = ["run", "b", "--permits", "4", "--of", "5", "--", "true"];
    let _waiter = Running::spawn(place.lockkit(waiting));
    place.until_waiters(1);

    let locks = place.ls();
    let find = |name: &str| locks.iter().find(|lock| lock["name"] == name).unwrap();
    let holder = |name: &str| &find(name)["holders"][0];
    assert_eq!(
        (&find("a")["kind"], &holder("a")["mode"]),
        (&"rw".into(), &"shared".into())
    );
    assert_eq!(
        (&find("b")["size"], &holder("b")["permits"]),
        (&5.into(), &2.into())
    );
    assert_eq!(find("b")["waiters"][0]["permits"], 4);
    assert_eq!(
        (&find("c")["size"], &holder("c")["segment"]),
        (&8.into(), &0.into())
    );
    assert_eq!(
        (&holder("d")["mode"], &holder("d")["segment"]),
        (&"exclusive".into(), &Value::Null)
    );
    assert_eq!(holder("e")["detached"], true);
    assert_eq!(holder("d")["asked_to_release"], false);
    assert_eq!(holder("d")["id"].as_str().unwrap().len(), 8);

    let listed = place.said(&["ls"]);
    for part in [
        "shared",
        "2 of 5",
        "4 of 5",
        "segment 0 of 8",
        "held, detached",
        "waiting, 1",
    ] {
        assert!(listed.contains(part), "{part}: {listed}");
    }
    assert_eq!(listed.lines().count(), 7, "{listed}");
}

#[test]
fn a_request_is_told_and_cmd_goes_on() {
    let place = Place::new();
    let script = "echo in; read _; exit 4";
    let mut runs: Vec<_> = [&["--on-request", "warn"][..], &["--on-request", "ignore"]]
        .iter()
        .map(|options| {
            let head = ["run", "x", "--of", "3"];
            let cmd = ["--", "sh", "-c", script];
            place.start(head.iter().chain(*options).chain(&cmd))
        })
        .collect();
    assert_eq!(
        place.said(&["request-release", "x"]),
        "asked 2 holders of \"x\"\n"
    );
    for holder in place.ls()[0]["holders"].as_array().unwrap() {
        assert_eq!(holder["asked_to_release"], true);
    }
    assert!(place.said(&["ls"]).contains("held, asked for"));
    let said = place.refused(&["request-release", "x", "--wait", "300ms"], 75);
    assert!(
        said.starts_with("\"x\" is still held after 300ms by sh ("),
        "{said}"
    );
    let ignores = runs.remove(1);
    assert_eq!(ends(ignores), (4, String::new()));
    let told = "lockkit: somebody asks for \"x\"; CMD goes on\n".to_owned();
    assert_eq!(ends(runs.remove(0)), (4, told));
}

/// Lets a CMD that reads its stdin end; its code, and what was said on stderr.
fn ends(mut running: Running) -> (i32, String) {
    running.close_stdin();
    let (status, said) = running.end();
    (status.code().unwrap(), said)
}

#[test]
fn a_request_ends_cmd_if_it_is_to() {
    let place = Place::new();
    let script = "trap 'exit 9' TERM; echo in; while :; do sleep 0.05; done";
    let args = ["run", "x", "--on-request", "term", "--", "sh", "-c", script];
    let running = place.start(args);
    assert_eq!(
        place.said(&["request-release", "x", "--wait", "20s"]),
        "asked 1 holder of \"x\"\n"
    );
    assert_eq!(place.status(["run", "-n", "x", "--", "true"]), 0);
    let (status, said) = running.end();
    assert_eq!(
        status.code(),
        Some(9),
        "the code of CMD, for nothing was lost"
    );
    // The shell may have something to say of its sleep, too.
    assert!(
        said.starts_with("lockkit: somebody asks for \"x\"; CMD is ended\n"),
        "{said}"
    );
}

#[test]
fn cmd_that_ignores_the_request_is_killed_after_the_grace() {
    let place = Place::new();
    let script = "trap '' TERM; echo in; while :; do sleep 0.05; done";
    let options = ["run", "x", "--on-request", "term", "-k", "200ms"];
    let more = ["--format", "json", "--", "sh", "-c", script];
    let running = place.start(options.iter().chain(&more));
    place.said(&["request-release", "x", "--wait", "20s"]);
    let (status, said) = running.end();
    assert_eq!(status.code(), Some(137));
    let events: Vec<Value> = said
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let names: Vec<_> = events
        .iter()
        .map(|event| event["event"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["acquired", "release-requested", "released"]);
}

#[test]
fn a_request_reaches_every_kind_or_one() {
    let place = Place::new();
    assert_eq!(place.said(&["request-release", "x"]), "\"x\" is free\n");
    let _holders = [
        place.hold("x"),
        place.hold_as(&["--shared"], "x"),
        place.hold_as(&["--shared"], "x"),
        place.hold_as(&["--of", "2"], "x"),
        place.hold_as(&["--any-of", "2"], "x"),
        place.hold("y"),
    ];
    let asked = |kind: &[&str]| {
        let args = ["request-release", "x", "--format", "json"];
        let said = place.said(&args.iter().chain(kind).copied().collect::<Vec<_>>());
        serde_json::from_str::<Value>(&said).unwrap()["asked"].clone()
    };
    assert_eq!(asked(&["--kind", "rw"]), 2);
    assert_eq!(asked(&["--kind", "mutex"]), 1);
    assert_eq!(asked(&[]), 5);
    let locks = place.ls();
    let y = locks.iter().find(|lock| lock["name"] == "y").unwrap();
    assert_eq!(y["holders"][0]["asked_to_release"], false);
}

#[test]
fn a_detached_hold_has_nobody_to_ask() {
    let place = Place::new();
    place.said(&["acquire", "x", "--label", "job"]);
    let said = place.said(&["request-release", "x", "--wait", "0"]);
    assert!(
        said.starts_with("asked 0 holders of \"x\"; nobody to ask for job ("),
        "{said}"
    );
}

#[test]
fn break_takes_no_more_than_was_asked_for() {
    let place = Place::new();
    let holders = [
        place.hold_as(&["--shared"], "x"),
        place.hold_as(&["--shared"], "x"),
        place.hold_as(&["--of", "2"], "x"),
    ];
    let said = place.refused(&["break", "x"], 64);
    assert!(
        said.starts_with("\"x\" has 3 holders; break one with --id, or all with --all: "),
        "{said}"
    );
    let locks = place.ls();
    let semaphore = locks.iter().find(|lock| lock["kind"] == "semaphore");
    let id = semaphore.unwrap()["holders"][0]["id"].as_str().unwrap();
    assert!(said.contains(&format!("{id} is sh (")), "{said}");

    let broken = place.said(&["break", "x", "--kind", "semaphore"]);
    assert!(
        broken.starts_with("broke \"x\": sh (") && broken.contains(", 1 of 2)"),
        "{broken}"
    );
    let said = place.refused(&["break", "x", "--id", id], 79);
    assert!(said.contains("nobody holds \"x\" under the id"), "{said}");

    let readers = place.ls()[0]["holders"].as_array().unwrap().clone();
    assert_eq!(readers.len(), 2);
    let id = readers[0]["id"].as_str().unwrap();
    let broken = place.said(&["break", "x", "--id", id, "--format", "json"]);
    let broken: Value = serde_json::from_str(&broken).unwrap();
    assert_eq!(
        (&broken["id"], &broken["mode"]),
        (&id.into(), &"shared".into())
    );
    let left = place.ls()[0]["holders"].as_array().unwrap().clone();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0]["id"], readers[1]["id"]);

    place.said(&["break", "x", "--all"]);
    assert!(place.ls().is_empty());
    for holder in holders {
        assert_eq!(holder.end().0.code(), Some(79));
    }
}

#[test]
fn break_by_what_acquire_printed() {
    let place = Place::new();
    let mine = place.said(&["acquire", "x", "--of", "2"]);
    place.said(&["acquire", "x", "--of", "2", "--label", "other"]);
    place.said(&["break", "x", "--id", mine.trim()]);
    assert_eq!(place.status(["renew", mine.trim()]), 79);
    let left = place.ls()[0]["holders"].as_array().unwrap().clone();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0]["label"]["text"], "other");
}

#[test]
fn permits_are_resized_while_they_are_held() {
    let place = Place::new();
    let holder = place.hold_as(&["--permits", "2", "--of", "2"], "x");
    place.refused(&["run", "-n", "x", "--of", "2", "true"], 75);
    assert_eq!(place.said(&["resize", "x", "--permits", "3"]), "");
    assert_eq!(
        place.status(["run", "-n", "x", "--of", "3", "--", "true"]),
        0
    );
    place.refused(&["run", "-n", "x", "--of", "2", "true"], 78);

    place.said(&["resize", "x", "--permits", "1"]);
    place.refused(&["run", "-n", "x", "--of", "1", "true"], 75);
    assert!(holder.finish().success(), "nothing was taken from it");
    assert_eq!(
        place.status(["run", "-n", "x", "--of", "1", "--", "true"]),
        0
    );
}

#[test]
fn who_waits_for_more_permits_than_there_are_now_is_told() {
    let place = Place::new();
    let _holder = place.hold_as(&["--of", "3"], "x");
    let waiter = place.lockkit(["run", "x", "--permits", "3", "--of", "3", "true"]);
    let waiter = Running::spawn(waiter);
    place.until_waiters(1);
    place.said(&["resize", "x", "--permits", "2"]);
    let (status, said) = waiter.end();
    assert_eq!(status.code(), Some(78), "{said}");
    assert!(said.contains("lowered to 2; ask for fewer"), "{said}");
}

#[test]
fn segments_are_resized_when_nobody_has_one() {
    let place = Place::new();
    let holder = place.hold_as(&["--any-of", "2"], "x");
    let said = place.refused(&["resize", "x", "--segments", "4"], 75);
    assert!(
        said.starts_with("segments of \"x\" are in use; try again when none is: held by sh ("),
        "{said}"
    );
    assert!(holder.finish().success());
    let output = place.output(["resize", "x", "--segments", "4", "-v"]);
    assert_eq!(
        text(&output.stderr),
        "lockkit: \"x\" has 4 segments from now on\n"
    );
    let said = place.said(&["run", "x", "--any-of", "4", "-c", "echo $LOCKKIT_MODE"]);
    assert_eq!(said, "segment 0 of 4\n");
}

#[test]
fn a_signal_ends_the_wait_for_those_who_were_asked() {
    let place = Place::new();
    let _holder = place.hold("x");
    let asking = place.start(["request-release", "x", "--wait", "10m"]);
    assert_eq!(asking.first_line, "asked 1 holder of \"x\"");
    asking.signal(Signal::TERM);
    let (status, _) = asking.end();
    assert_eq!(status.signal(), Some(15));
}
