//! `cargo xtask bench`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use clap::ValueEnum;

use crate::peers;
use crate::steps::{Steps, cargo};
use crate::workspace::Workspace;

/// What to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Suite {
    /// The policy on the in-memory backend: what lockkit itself costs.
    Core,
    /// Locks in an SQLite file and the `lockkit` command, beside flock(2).
    Sqlite,
    /// Locks in a Redis server, beside the bare client and other libraries.
    Redis,
}

/// The arguments of `cargo xtask bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The suite to run.
    suite: Suite,
    /// A smoke run; its figures mean nothing.
    #[arg(long)]
    quick: bool,
    /// Where `results.json` and `results.txt` go; made if missing. The measured files live there
    /// too, so choose a directory on the disk in question.
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
    /// Measure the libraries of other languages too, which Maven and Go build.
    #[arg(long)]
    peers: bool,
    /// How often each subject of a suite with a server runs; 5 unless told otherwise.
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
}

/// Builds the benchmarks, and what they run, then measures.
pub(crate) fn run(args: &Args) -> Result<()> {
    let mut steps = Steps::default();
    steps.run(&mut cargo(
        "build --release --package lockkit-benches --package lockkit-cli",
    ))?;
    let workspace = Workspace::load()?;
    let target = workspace.target_dir()?;
    let suite = args.suite.to_possible_value();
    let mut bench = Command::new(target.join("release/lockkit-benches"));
    bench
        .args(suite.iter().map(|suite| suite.get_name()))
        .arg("--out")
        .arg(&args.out);
    if args.quick {
        bench.arg("--quick");
    }
    if args.suite == Suite::Redis {
        bench.args(peers::build(&mut steps, &workspace, args.peers)?);
        if let Some(rounds) = args.rounds {
            bench.args(["--rounds", &rounds.to_string()]);
        }
    }
    steps.run(&mut bench)
}
