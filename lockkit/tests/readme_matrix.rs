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
        "| backend | exclusion | fence | primitives | fair order | wake-up \
         | a killed process frees its locks | leases |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n",
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
        let primitives: Vec<_> = Primitive::ALL
            .into_iter()
            .filter(|primitive| descriptor.supports(*primitive))
            .map(Primitive::as_str)
            .collect();
        table += &format!(
            "| `{driver}` | {guarantee} | {fence} | {} | {} | {wake_up} | {after_crash} | {} to {} |\n",
            primitives.join(", "),
            if descriptor.fair { "yes" } else { "no" },
            in_words(*ttl.start()),
            in_words(*ttl.end()),
        );
    }
    table
}

fn in_words(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 3600.. if seconds % 3600 == 0 => format!("{} h", seconds / 3600),
        _ => format!("{duration:?}").replace("ms", " ms"),
    }
}
