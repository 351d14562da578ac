//! The other commands, and what CMD finds.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::io::Write as _;
use std::process::Stdio;

use serde_json::Value;
use support::{Place, text};

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn acquire_renew_and_release() {
    let place = Place::new();
    let acquired = place.output(["acquire", "-t", "1m", "job", "--format", "json"]);
    assert!(acquired.status.success(), "{}", text(&acquired.stderr));
    let hold = json(&acquired.stdout);
    assert_eq!(
        (&hold["name"], &hold["remaining_ms"]),
        (&"job".into(), &60_000.into())
    );
    let id = hold["id"].as_str().unwrap();

    let locks = place.ls();
    assert_eq!(locks[0]["holders"][0]["detached"], true);
    assert_eq!(locks[0]["holders"][0]["fence"], hold["fence"]);
    assert_eq!(place.status(["run", "-n", "job", "--", "true"]), 75);

    assert_eq!(place.status(["renew", id, "--ttl", "10m"]), 0);
    assert!(
        place.ls()[0]["holders"][0]["remaining_ms"]
            .as_u64()
            .unwrap()
            > 60_000
    );
    assert_eq!(place.status(["release", id]), 0);
    assert!(place.ls().is_empty());

    let again = place.output(["release", id]);
    assert_eq!(again.status.code(), Some(79));
    assert!(
        text(&again.stderr).contains("not held under this id"),
        "{}",
        text(&again.stderr)
    );
    assert_eq!(place.status(["renew", id]), 79);
}

#[test]
fn acquire_prints_the_id_and_nothing_else() {
    let place = Place::new();
    let output = place.output(["acquire", "a/b c"]);
    let id = text(&output.stdout);
    assert!(id.starts_with("mutex/a%2Fb%20c."), "{id}");
    assert_eq!(id.lines().count(), 1);
    assert_eq!(text(&output.stderr), "");
    assert_eq!(place.status(["release", id.trim()]), 0);
}

#[test]
fn ls_lists_holders_and_waiters_in_order() {
    let place = Place::new();
    assert_eq!(text(&place.output(["ls"]).stdout), "nothing is locked\n");
    let _holder = place.hold("db/main");
    let _other = place.hold("cache");
    let mut waiters = Vec::new();
    for (i, label) in ["first", "second"].iter().enumerate() {
        let args = ["run", "db/main", "--label", label, "--", "true"];
        waiters.push(support::Running::spawn(place.lockkit(args)));
        place.until_waiters(i + 1);
    }
    let locks = place.ls();
    let names: Vec<_> = locks
        .iter()
        .map(|lock| lock["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["cache", "db/main"]);
    assert_eq!(locks[1]["holders"][0]["label"]["text"], "sh");
    assert_eq!(locks[1]["waiters"][0]["label"]["text"], "first");
    assert_eq!(locks[1]["waiters"][1]["label"]["text"], "second");
    assert!(
        locks[1]["holders"][0]["since"]
            .as_str()
            .unwrap()
            .ends_with('Z')
    );

    let listed = text(&place.output(["ls", "db/"]).stdout);
    let lines: Vec<_> = listed.lines().collect();
    assert_eq!(lines.len(), 4, "{listed}");
    assert!(lines[0].starts_with("NAME     KIND   STATE"), "{listed}");
    assert!(
        lines[1].contains("held") && lines[3].contains("waiting, 2"),
        "{listed}"
    );
}

#[test]
fn ls_watch_goes_on_until_a_signal() {
    let place = Place::new();
    let mut watch = place.start(["ls", "--watch=50ms"]);
    assert_eq!(watch.first_line, "nothing is locked");
    assert_eq!(watch.line(), "nothing is locked");
    watch.signal(rustix::process::Signal::INT);
    assert_eq!(watch.end().0.code(), Some(130));
}

#[test]
fn break_says_whom() {
    let place = Place::new();
    assert_eq!(
        text(&place.output(["break", "x"]).stdout),
        "\"x\" is free\n"
    );
    let id = text(&place.output(["acquire", "x", "--label", "deploy"]).stdout);
    let output = place.output(["break", "x"]);
    let said = text(&output.stdout);
    assert!(
        said.starts_with("broke \"x\": deploy (") && said.contains("fence 1"),
        "{said}"
    );
    assert_eq!(place.status(["renew", id.trim()]), 79);
    assert!(place.ls().is_empty());
}

#[test]
fn cmd_finds_its_lock_and_stdin_and_owns_stdout() {
    let place = Place::new();
    let script = "cat; echo $LOCKKIT_KEY $LOCKKIT_FENCING_TOKEN $LOCKKIT_BACKEND $LOCKKIT_HOLDER";
    let args = [
        "run", "-v", "--label", "me", "a/b", "--", "sh", "-c", script,
    ];
    let mut command = place.lockkit(args);
    let mut running = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    running
        .stdin
        .take()
        .unwrap()
        .write_all(b"from stdin\n")
        .unwrap();
    let output = running.wait_with_output().unwrap();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(
        stdout.starts_with("from stdin\na/b 1 sqlite me ("),
        "{stdout}"
    );
    assert!(
        stderr.contains("acquired \"a/b\"") && stderr.contains("released"),
        "{stderr}"
    );
}

#[test]
fn nested_runs_show_the_innermost_name() {
    let place = Place::new();
    let lockkit = assert_cmd::cargo::cargo_bin!("lockkit").to_str().unwrap();
    let output = place.output([
        "run",
        "a",
        "--",
        lockkit,
        "run",
        "b",
        "--",
        "sh",
        "-c",
        "echo $LOCKKIT_KEY",
    ]);
    assert_eq!(text(&output.stdout), "b\n", "{}", text(&output.stderr));
}

#[test]
fn events_are_json_lines_on_stderr() {
    let place = Place::new();
    let output = place.output(["run", "--format", "json", "x", "--", "echo", "mine"]);
    assert_eq!(text(&output.stdout), "mine\n");
    let events: Vec<Value> = text(&output.stderr)
        .lines()
        .map(|line| json(line.as_bytes()))
        .collect();
    let names: Vec<_> = events
        .iter()
        .map(|event| event["event"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["acquired", "released"]);
    assert_eq!(events[0]["fence"], 1);
}

#[test]
fn ping_and_backends_tell_what_there_is() {
    let place = Place::new();
    let ping = json(&place.output(["ping", "--format", "json"]).stdout);
    assert_eq!(ping["backend"], "sqlite");
    assert!(text(&place.output(["ping"]).stdout).starts_with("backend "));
    let backends = json(&place.output(["backends", "--format", "json"]).stdout);
    let drivers: Vec<_> = backends
        .as_array()
        .unwrap()
        .iter()
        .map(|backend| &backend["driver"])
        .collect();
    assert!(drivers.contains(&&"sqlite".into()) && drivers.contains(&&"memory".into()));
    assert!(text(&place.output(["backends"]).stdout).contains("durable"));
}

#[test]
fn completions_and_manual() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = text(&place.output(["completions", shell]).stdout);
        assert!(
            script.contains("lockkit") && script.contains("kill-after"),
            "{shell}"
        );
    }
    let page = text(&place.output(["man"]).stdout);
    for part in [
        ".TH lockkit",
        "EXIT STATUS",
        "LOCKKIT\\_FENCING",
        "SIGNALS",
        "128+n",
    ] {
        assert!(
            page.contains(part) || page.contains(&part.replace('\\', "")),
            "{part}"
        );
    }
    let page = text(&place.output(["man", "run"]).stdout);
    for part in [
        "kill\\-after",
        "EXIT STATUS",
        "EXAMPLES",
        "Processes that CMD",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("SUBCOMMANDS"));
    let page = text(&place.output(["man", "latch", "wait"]).stdout);
    assert!(page.contains("not open") && page.contains("EXAMPLES"));
}

#[test]
fn help_lists_the_exit_codes() {
    let place = Place::new();
    for args in [&["--help"][..], &["run", "--help"]] {
        let output = place.output(args);
        let help = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0));
        for code in ["64", "69", "75", "77", "78", "79", "126", "127", "128+n"] {
            assert!(help.contains(&format!("\n  {code:<6} ")), "{code}");
        }
    }
    assert_eq!(place.status(["--version"]), 0);
}

#[test]
fn the_default_is_a_file_in_the_state_directory() {
    let place = Place::new();
    let state = place.path("state 100%?");
    let output = place
        .lockkit(["run", "x", "--", "true"])
        .env_remove("LOCKKIT_URL")
        .env("XDG_STATE_HOME", &state)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(state.join("lockkit/locks.db").is_file());
}
