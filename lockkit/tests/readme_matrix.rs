//! The support matrix in the README is made from the backends' own descriptors.
//!
//! `cargo xtask matrix` rewrites it; this test fails when it is stale.

#![cfg(feature = "sqlite")]

use std::path::Path;
use std::time::Duration;
use std::{env, fs};

use lockkit::{Descriptor, Primitive};

const BEGIN: &str = "<!-- matrix -->\n";
const END: &str = "<!-- /matrix -->";

#[test]
fn the_support_matrix_in_the_readme_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let (before, rest) = readme.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let current = format!("{before}{BEGIN}{}{END}{after}", matrix());
    if env::var_os("LOCKKIT_REWRITE").is_some() {
        fs::write(&path, current).unwrap();
    } else {
        assert!(
            readme == current,
            "the matrix is stale; run `cargo xtask matrix`"
        );
    }
}

fn matrix() -> String {
    let mut table = String::from(
        "| backend | exclusion | fence | wake-up | a killed process frees its locks | leases |\n\
         | --- | --- | --- | --- | --- | --- |\n",
    );
    for descriptor in lockkit::backends() {
        let Descriptor {
            driver,
            guarantee,
            fence,
            wake_up,
            after_crash,
            ttl,
            ..
        } = descriptor;
        table += &format!(
            "| `{driver}` | {guarantee} | {fence} | {wake_up} | {after_crash} | {} to {} |\n",
            in_words(*ttl.start()),
            in_words(*ttl.end()),
        );
    }
    table + "\n" + &primitives()
}

/// What each backend has: one row for each primitive, and for what depends on the backend in one.
fn primitives() -> String {
    let backends = lockkit::backends();
    let row = |what: &str, has: &dyn Fn(&Descriptor) -> &'static str| {
        let cells = backends
            .iter()
            .map(|backend| format!(" {} |", has(backend)));
        format!("| {what} |{}\n", cells.collect::<String>())
    };
    let names = backends
        .iter()
        .map(|backend| format!(" `{}` |", backend.driver));
    let mut table = format!("| |{}\n|", names.collect::<String>());
    table += &" --- |".repeat(backends.len() + 1);
    table += "\n";
    for primitive in Primitive::ALL {
        let what = match primitive {
            Primitive::Mutex => "mutex, reentrant mutex",
            Primitive::ReadWrite => "read-write lock, downgrade, upgrade",
            Primitive::Semaphore => "semaphore",
            Primitive::Latch => "latch",
            Primitive::Segmented => "segmented lock",
            other => panic!("no words for {other}"),
        };
        table += &row(what, &|backend| yes(backend.supports(primitive)));
    }
    table += &row("first come, first served", &|backend| yes(backend.fair));
    table += &row("multi-lock", &|backend| match backend.at_once {
        true => "in one request",
        false => "one by one",
    });
    table += &row("detached holds, inspect, evict", &|_| "yes");
    table += &row("who waits is shown, in order", &|backend| yes(backend.line));
    table += &row("requests to release", &|backend| yes(backend.revocation));
    table
}

const fn yes(has: bool) -> &'static str {
    if has { "yes" } else { "no" }
}

fn in_words(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 3600.. if seconds % 3600 == 0 => format!("{} h", seconds / 3600),
        seconds @ 60.. if seconds % 60 == 0 => format!("{} min", seconds / 60),
        _ => format!("{duration:?}").replace("ms", " ms"),
    }
}
