//! `cargo xtask bench`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use clap::ValueEnum;

use crate::servers::Servers;
use crate::steps::{Steps, cargo};
use crate::workspace::Workspace;

/// What to measure.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Suite {
    /// The policy on the in-memory backend: what lockkit itself costs.
    Core,
    /// Locks in an SQLite file and the `lockkit` command, beside flock(2).
    Sqlite,
}

impl Suite {
    /// Whether it measures what needs no server.
    const fn is_alone(self) -> bool {
        matches!(self, Self::Core | Self::Sqlite)
    }
}

/// The arguments of `cargo xtask bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The suite to run.
    suite: Suite,
    /// A smoke run of a few seconds; its figures mean nothing.
    #[arg(long)]
    quick: bool,
    /// Where `results.json` and `results.txt` go; made if missing. The measured files live there
    /// too, so choose a directory on the disk in question.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// Builds the benchmarks, and the command that one of them runs, then measures.
pub(crate) fn run(args: &Args) -> Result<()> {
    let mut steps = Steps::default();
    steps.run(&mut cargo(
        "build --release --package lockkit-benches --package lockkit-cli",
    ))?;
    let built = Workspace::load()?
        .target_dir()?
        .join("release/lockkit-benches");
    let suite = args.suite.to_possible_value();
    let mut bench = Command::new(built);
    bench
        .args(suite.iter().map(|suite| suite.get_name()))
        .arg("--out")
        .arg(&args.out);
    if args.quick {
        bench.arg("--quick");
    }
    if args.suite.is_alone() {
        return steps.run(&mut bench);
    }
    let servers = Servers::start(&mut steps)?;
    servers.announce(&mut bench);
    steps.run(&mut bench)
}
