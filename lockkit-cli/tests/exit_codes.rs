//! What `lockkit run` exits with.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::time::{Duration, Instant};

use support::{Place, text};

#[test]
fn the_code_of_cmd_is_kept() {
    let place = Place::new();
    assert_eq!(place.status(["run", "x", "--", "true"]), 0);
    assert_eq!(place.status(["run", "x", "--", "sh", "-c", "exit 7"]), 7);
    assert_eq!(
        place.status(["run", "x", "sh", "-c", "exit 8"]),
        8,
        "without the two dashes"
    );
    assert_eq!(
        place.status(["run", "x", "-c", "exit 9"]),
        9,
        "through the shell"
    );
}

#[test]
fn a_signal_that_ends_cmd_is_128_and_its_number() {
    let place = Place::new();
    assert_eq!(
        place.status(["run", "x", "--", "sh", "-c", "kill -KILL $$"]),
        137
    );
    assert_eq!(
        place.status(["run", "x", "--", "sh", "-c", "kill -TERM $$"]),
        143
    );
}

#[test]
fn what_cannot_be_run_is_126_or_127_with_one_line() {
    let place = Place::new();
    std::fs::write(place.path("plain"), "no program").unwrap();
    std::fs::write(place.path("orphan"), "#!/no/such/interpreter\n").unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(place.path("orphan"), executable).unwrap();
    for (cmd, code, said) in [
        ("./plain", 126, "cannot run ./plain: Permission denied"),
        ("/", 126, "cannot run /: "),
        ("./missing", 127, "cannot run ./missing: not found"),
        (
            "no-such-program",
            127,
            "cannot run no-such-program: not found",
        ),
        ("./orphan", 127, "cannot run ./orphan: the interpreter"),
    ] {
        let output = place.output(["run", "x", "--", cmd]);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{stderr}");
        assert!(stderr.starts_with(&format!("lockkit: {said}")), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
    assert!(place.ls().is_empty(), "the lock is free again");
}

#[test]
fn a_taken_lock_is_75_or_what_was_asked_for() {
    let place = Place::new();
    let holder = place.start([
        "run",
        "x",
        "--label",
        "nightly",
        "--",
        "sh",
        "-c",
        "echo in; read _ || :",
    ]);
    let output = place.output(["run", "-n", "x", "--", "touch", "ran"]);
    assert_eq!(output.status.code(), Some(75));
    let stderr = text(&output.stderr);
    assert!(
        stderr.starts_with("lockkit: \"x\" is taken: held by nightly ("),
        "{stderr}"
    );
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert_eq!(
        place.status(["run", "-n", "-E", "3", "x", "--", "touch", "ran"]),
        3
    );
    assert_eq!(
        place.status(["run", "-w", "0", "x", "--", "touch", "ran"]),
        75
    );
    assert_eq!(place.status(["acquire", "-n", "x"]), 75);
    assert_eq!(
        place.status(["run", "-n", "y", "--", "true"]),
        0,
        "another name"
    );
    assert!(!place.path("ran").exists());
    assert!(holder.finish().success());
    assert_eq!(place.status(["run", "-n", "x", "--", "true"]), 0);
}

#[test]
fn waiting_ends_in_time() {
    let place = Place::new();
    let _holder = place.hold("x");
    let started = Instant::now();
    let output = place.output(["run", "-w", "300ms", "x", "--", "touch", "ran"]);
    assert_eq!(output.status.code(), Some(75));
    assert!(started.elapsed() >= Duration::from_millis(300));
    let stderr = text(&output.stderr);
    assert!(
        stderr.contains("gave up waiting for \"x\" after 300ms: held by sh ("),
        "{stderr}"
    );
    assert!(!place.path("ran").exists());
    place.until_waiters(0);
}

#[test]
fn a_waiter_runs_when_the_holder_ends() {
    let place = Place::new();
    let holder = place.hold("x");
    let waiter = support::Running::spawn(place.lockkit(["run", "x", "--", "true"]));
    place.until_waiters(1);
    assert!(holder.finish().success());
    let (status, said) = waiter.end();
    assert!(status.success());
    assert_eq!(said, "", "silent where stderr is no terminal");
}
