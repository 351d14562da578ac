//! `cargo xtask test`.

use anyhow::Result;

use crate::servers::Servers;
use crate::steps::{Steps, cargo};

/// Runs unit, doc and conformance tests of every crate.
///
/// One invocation with one set of features, so that each dependency is built once.
pub(crate) fn run() -> Result<()> {
    let mut steps = Steps::default();
    let servers = Servers::start(&mut steps)?;
    let mut tests = cargo("test --workspace --all-features --no-fail-fast");
    servers.announce(&mut tests);
    // Most tests wait for leases and servers more than they compute.
    if std::env::var_os("RUST_TEST_THREADS").is_none() {
        tests.env("RUST_TEST_THREADS", "4");
    }
    steps.run(&mut tests)?;
    steps.summary();
    Ok(())
}
