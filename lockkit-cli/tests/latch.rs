//! `lockkit latch`, across processes.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use support::{Place, Running};

fn waiter(place: &Place) -> Running {
    Running::spawn(place.lockkit(["latch", "wait", "x"]))
}

#[test]
fn who_waits_goes_on_when_all_have_come() {
    let place = Place::new();
    assert_eq!(
        place.said(&["latch", "set", "x", "3"]),
        "",
        "nothing to say without -v"
    );
    let waiters = [waiter(&place), waiter(&place)];
    place.until_waiters(2);
    assert_eq!(place.said(&["latch", "down", "x", "--as", "one"]), "2\n");
    let again = place.said(&["latch", "down", "x", "--as", "one"]);
    assert_eq!(again, "2\n", "it has come before");
    assert_eq!(place.said(&["latch", "down", "x"]), "1\n");
    assert_eq!(
        place.said(&["latch", "show", "x"]).lines().next().unwrap(),
        "\"x\" is closed, 1 of 3 to come"
    );
    place.until_waiters(2);
    assert_eq!(
        place.said(&["latch", "down", "x"]),
        "0\n",
        "somebody new each time"
    );
    for waiter in waiters {
        let (status, said) = waiter.end();
        assert!(status.success(), "{said}");
        assert_eq!(said, "", "silent where stderr is no terminal");
    }
    assert_eq!(
        place.said(&["latch", "wait", "-n", "x"]),
        "",
        "who comes late goes on at once"
    );
    assert_eq!(
        place.said(&["latch", "down", "x"]),
        "0\n",
        "more than were waited for"
    );
    assert!(place.ls().is_empty());
}

#[test]
fn a_wait_in_vain_is_75_or_what_was_asked_for() {
    let place = Place::new();
    let said = place.refused(&["latch", "wait", "-n", "x"], 75);
    assert_eq!(said, "\"x\" has not opened: it is not set");
    place.said(&["latch", "set", "x", "2"]);
    let started = Instant::now();
    let said = place.refused(&["latch", "wait", "-w", "200ms", "x"], 75);
    assert!(started.elapsed() >= Duration::from_millis(200));
    assert_eq!(
        said,
        "gave up waiting for \"x\" after 200ms: it is closed, 2 of 2 to come"
    );
    place.refused(&["latch", "wait", "-n", "-E", "3", "x"], 3);
    place.until_waiters(0);
}

#[test]
fn a_signal_while_waiting_withdraws() {
    let place = Place::new();
    let waiter = waiter(&place);
    place.until_waiters(1);
    waiter.signal(Signal::TERM);
    let (status, said) = waiter.end();
    assert_eq!(status.code(), Some(143), "{said}");
    assert_eq!(
        said,
        "lockkit: ended by SIGTERM before the latch was open\n"
    );
    assert!(place.ls().is_empty(), "not set, and nobody waits any more");
}

#[test]
fn a_latch_that_is_being_counted_stays_as_it_is() {
    let place = Place::new();
    let said = place.refused(&["latch", "down", "x"], 75);
    assert!(
        said.starts_with("\"x\" is not set; first say how many are to come"),
        "{said}"
    );
    place.said(&["latch", "set", "x", "2"]);
    place.said(&["latch", "down", "x"]);
    for args in [&["latch", "set", "x", "5"][..], &["latch", "reset", "x"]] {
        let said = place.refused(args, 75);
        assert!(
            said.starts_with("\"x\" is closed, 1 of 2 to come; wait until it is open"),
            "{said}"
        );
    }
    assert_eq!(place.said(&["latch", "down", "x"]), "0\n");
    assert_eq!(
        place.said(&["latch", "show", "x"]),
        "\"x\" is open, all 2 have come\n"
    );
    place.said(&["latch", "set", "x", "1"]);
    place.refused(&["latch", "wait", "-n", "x"], 75);
    place.said(&["latch", "down", "x"]);
    place.said(&["latch", "reset", "x"]);
    assert_eq!(place.said(&["latch", "show", "x"]), "\"x\" is not set\n");
    place.said(&["latch", "reset", "x"]);
}

#[test]
fn show_and_ls_show_the_count_and_who_waits() {
    let place = Place::new();
    place.said(&["latch", "set", "x", "2"]);
    let args = ["latch", "wait", "x", "--label", "starter"];
    let waiter = Running::spawn(place.lockkit(args));
    place.until_waiters(1);

    let shown = place.said(&["latch", "show", "x", "--format", "json"]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(
        (&shown["latch"]["left"], &shown["latch"]["of"]),
        (&2.into(), &2.into())
    );
    assert_eq!(shown["waiters"][0]["label"]["text"], "starter");
    assert_eq!(
        place.ls()[0]["latch"],
        shown["latch"],
        "the same in the list"
    );
    let shown = place.said(&["latch", "show", "x"]);
    assert!(
        shown.starts_with("\"x\" is closed, 2 of 2 to come\n") && shown.contains("starter ("),
        "{shown}"
    );
    let listed = place.said(&["ls"]);
    let lines: Vec<_> = listed.lines().collect();
    assert!(
        lines[1].contains("closed") && lines[1].contains("2 of 2 to come"),
        "{listed}"
    );
    assert!(
        lines[2].contains("waiting, 1") && lines[2].contains("until open"),
        "{listed}"
    );
    waiter.signal(Signal::INT);
    assert_eq!(waiter.end().0.code(), Some(130));
}

#[test]
fn events_for_programs() {
    let place = Place::new();
    let set = place.output(["latch", "set", "x", "1", "--format", "json"]);
    let event: Value = serde_json::from_slice(&set.stderr).unwrap();
    assert_eq!(
        (&event["event"], &event["count"]),
        (&"set".into(), &1.into())
    );
    let down = place.said(&["latch", "down", "x", "--format", "json"]);
    assert_eq!(down, "{\"left\":0,\"name\":\"x\"}\n");
}
