//! Bad input: the right number, one line that names the cure, no secrets, and nothing touched.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::os::unix::ffi::OsStringExt as _;

use support::{Place, text};

/// The status and the one line of a command that must fail before it touches anything.
fn refused(place: &Place, args: &[&str]) -> (i32, String) {
    let output = place.output(args);
    let said = text(&output.stderr);
    assert_eq!(said.lines().count(), 1, "{args:?}: {said}");
    assert!(said.starts_with("lockkit: "), "{said}");
    assert!(said.len() < 2000, "an error is no place to echo everything");
    assert_eq!(text(&output.stdout), "");
    (output.status.code().unwrap(), said)
}

#[test]
fn names() {
    let place = Place::new();
    for name in ["", &"x".repeat(201), &"é".repeat(101), &"n".repeat(100_000)] {
        for args in [
            &["run", name, "--", "true"][..],
            &["acquire", name],
            &["break", name],
            &["request-release", name],
            &["resize", name, "--permits", "1"],
            &["latch", "set", name, "1"],
            &["latch", "down", name],
            &["latch", "wait", name],
            &["latch", "show", name],
            &["latch", "reset", name],
        ] {
            let (status, said) = refused(&place, args);
            assert_eq!(status, 64);
            assert!(
                said.contains("1 to 200 bytes") || said.contains("shorten it to 200"),
                "{said}"
            );
        }
    }
    assert!(
        !place.path("locks.db").exists(),
        "refused before anything is touched"
    );
}

#[test]
fn nasty_names_are_names_of_their_own() {
    let place = Place::new();
    let nasty = [
        ".",
        "..",
        "/",
        "/abs",
        "a",
        "a/",
        "a/b",
        "a//b",
        "a/../b",
        "A",
        "a ",
        "\u{1}",
        "\u{7f}",
        "x\ny",
        "😀",
        "é",
        "e\u{301}",
        "{tag}",
        "*",
        "?",
        "[a]",
        "x'; drop table lk; --",
        "\"",
        "\\",
        "\r\nFLUSHALL\r\n",
        "zookeeper/quota",
        "%41",
    ];
    let mut ids = Vec::new();
    for name in nasty {
        let output = place.output(["acquire", "-n", "-t", "10m", "--", name]);
        assert!(
            output.status.success(),
            "{name:?}: {}",
            text(&output.stderr)
        );
        ids.push(text(&output.stdout).trim().to_owned());
    }
    assert_eq!(place.ls().len(), nasty.len());
    let listed = text(&place.output(["ls"]).stdout);
    assert_eq!(
        listed.lines().count(),
        nasty.len() + 1,
        "one line each: {listed}"
    );
    for id in ids {
        assert_eq!(place.status(["release", &id]), 0);
    }
    assert!(place.ls().is_empty());
}

#[test]
fn durations() {
    let place = Place::new();
    for (args, cure) in [
        (&["run", "-w", "10", "x", "true"][..], "write 10s"),
        (&["run", "-t", "1.5", "x", "true"], "write 1.5s"),
        (&["run", "-k", "soon", "x", "true"], "500ms, 10s or 2m"),
        (
            &["run", "-t", "10 parsecs", "x", "true"],
            "500ms, 10s or 2m",
        ),
        (&["run", "-t", "0s", "x", "true"], "out of range"),
        (&["run", "-t", "1us", "x", "true"], "out of range"),
        (&["run", "-t", "300000years", "x", "true"], "out of range"),
        (&["acquire", "-t", "1000days", "x"], "out of range"),
        (&["run", "-w", "-1s", "x", "true"], "-1"),
    ] {
        let (status, said) = refused(&place, args);
        assert_eq!(status, 64, "{said}");
        assert!(said.contains(cure), "{said}");
    }
    assert!(
        !place.path("locks.db").exists(),
        "refused before anything is touched"
    );
    assert_eq!(
        place.status(["run", "-w", "300000years", "x", "--", "true"]),
        0,
        "for ever"
    );
}

#[test]
fn usage() {
    let place = Place::new();
    for args in [
        &["run"][..],
        &["run", "x"],
        &["run", "x", "--"],
        &["run", "-n", "-w", "1s", "x", "true"],
        &["run", "-E", "256", "x", "true"],
        &["run", "-c", "true", "x", "true"],
        &["run", "--wiat", "1s", "x", "true"],
        &["run", "--on-lost", "shrug", "x", "true"],
        &["fly"],
        &["ls", "--format", "xml"],
        &["man", "fly"],
        &["man", "latch", "fly"],
        &["run", "--shared", "--exclusive", "x", "true"],
        &["run", "--any-of", "2", "--of", "2", "x", "true"],
        &["run", "--on-request", "shrug", "x", "true"],
        &["acquire", "--shared", "--of", "2", "x"],
        &["latch", "fly"],
        &["latch", "set", "x"],
        &["latch", "wait", "-n", "-w", "1s", "x"],
        &["resize", "x"],
        &["resize", "x", "--permits", "1", "--segments", "1"],
        &["break", "x", "--all", "--id", "0123abcd"],
        &["break", "x", "--kind", "latch"],
        &["request-release", "x", "--kind", "door"],
        &["completions", "csh"],
        &["ls", "-q", "-v"],
    ] {
        let (status, said) = refused(&place, args);
        assert_eq!(status, 64, "{said}");
    }
    assert_eq!(
        place.output(Vec::<&str>::new()).status.code(),
        Some(64),
        "help, and no success"
    );
}

#[test]
fn numbers() {
    let place = Place::new();
    for (args, cure) in [
        (&["run", "--permits", "2", "x", "true"][..], "--of <M>"),
        (&["run", "--segment-of", "k", "x", "true"], "--of <M>"),
        (
            &["run", "--permits", "0", "--of", "3", "x", "true"],
            "whole number from 1",
        ),
        (&["run", "--of", "-1", "x", "true"], "whole number from 1"),
        (&["run", "--of", "many", "x", "true"], "whole number from 1"),
        (
            &["run", "--any-of", "1.5", "x", "true"],
            "whole number from 1",
        ),
        (&["acquire", "--any-of", "4294967296", "x"], "to 4294967295"),
        (&["acquire", "--permits", "6", "--of", "5", "x"], "1 to 5"),
        (&["latch", "set", "x", "0"], "whole number from 1"),
        (&["latch", "set", "x", "-3"], "whole number from 1"),
        (&["resize", "x", "--segments", "0"], "whole number from 1"),
    ] {
        let (status, said) = refused(&place, args);
        assert_eq!(status, 64, "{said}");
        assert!(said.contains(cure), "{said}");
    }
    assert!(!place.path("locks.db").exists());
}

#[test]
fn ids_and_labels() {
    let place = Place::new();
    for id in [
        "",
        "x",
        "mutex/x",
        "mutex/x.1",
        "mutex/x.\u{1}",
        "no/x.000102030405060708090a0b0c0d0e0f",
    ] {
        for command in ["renew", "release"] {
            let (status, said) = refused(&place, &[command, id]);
            assert_eq!(status, 64, "{said}");
            assert!(said.contains("that `acquire` printed"), "{said}");
        }
    }
    let long = "l".repeat(201);
    for args in [
        &["run", "--label", &long, "x", "true"][..],
        &["latch", "wait", "--label", &long, "x"],
        &["latch", "down", "x", "--as", &long],
    ] {
        let (status, said) = refused(&place, args);
        assert_eq!(status, 64);
        assert!(said.contains("shorten it"), "{said}");
    }
    for id in ["", "12", "sh", "3FA2B1C0", "mutex/x.1"] {
        let (status, said) = refused(&place, &["break", "x", "--id", id]);
        assert_eq!(status, 64, "{said}");
        assert!(said.contains("that `lockkit ls` shows"), "{said}");
    }
    assert!(!place.path("locks.db").exists());
}

#[test]
fn urls() {
    let place = Place::new();
    for url in [
        "",
        "x",
        "nosuch:path",
        "sqlite:",
        "sqlite:x.db?tll=10s",
        "file:///etc/passwd",
    ] {
        let (status, said) = refused(&place, &["ls", "--url", url]);
        assert_eq!(status, 78, "{url}: {said}");
    }
    let missing = place.path("no/such/directory/locks.db");
    let (status, said) = refused(
        &place,
        &[
            "ls",
            "--url",
            &format!("sqlite:{}?create=false", missing.display()),
        ],
    );
    assert!([69, 78].contains(&status), "{status} {said}");
}

#[test]
fn passwords_are_never_echoed() {
    let place = Place::new();
    for url in [
        "redis://u:s3cr3t@h:notaport",
        "postgres://u:s3cr3t@h/db?what=s3cr3t",
        "s3cr3t",
        "sqlite:x.db?s3cr3t=s3cr3t",
    ] {
        let by_option = place.output(["ls", "--url", url]);
        let by_environment = place
            .lockkit(["ls"])
            .env("LOCKKIT_URL", url)
            .output()
            .unwrap();
        for output in [by_option, by_environment] {
            assert_eq!(output.status.code(), Some(78));
            let said = text(&output.stderr);
            if url.contains("://") {
                assert!(!said.contains("s3cr3t"), "{said}");
            }
        }
    }
    for args in [&["--help"][..], &["run", "--help"], &["run"], &["man"]] {
        let output = place
            .lockkit(args)
            .env("LOCKKIT_URL", "redis://u:s3cr3t@h")
            .output()
            .unwrap();
        assert!(!text(&output.stdout).contains("s3cr3t"));
        assert!(!text(&output.stderr).contains("s3cr3t"));
    }
}

#[test]
fn what_is_not_a_database_is_65_and_stays_as_it_is() {
    let place = Place::new();
    let junk = "this is no database, but somebody's letter. ".repeat(100);
    std::fs::write(place.path("locks.db"), &junk).unwrap();
    let (status, said) = refused(&place, &["run", "x", "--", "true"]);
    assert_eq!(status, 65, "{said}");
    assert_eq!(
        std::fs::read_to_string(place.path("locks.db")).unwrap(),
        junk
    );
}

#[test]
fn what_is_not_utf8_is_refused_or_passed_on() {
    let place = Place::new();
    let bytes = std::ffi::OsString::from_vec(vec![b'a', 0xff]);
    let output = place
        .lockkit(["run"])
        .arg(&bytes)
        .arg("true")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(64));
    let output = place
        .lockkit(["run", "x", "--", "echo"])
        .arg(&bytes)
        .output()
        .unwrap();
    assert_eq!(
        output.stdout,
        [b'a', 0xff, b'\n'],
        "the arguments of CMD are its own"
    );
    let output = place
        .lockkit(["ls"])
        .env("LOCKKIT_URL", &bytes)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(78));
}
