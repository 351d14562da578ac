//! Measures lockkit beside the floor it stands on: `cargo xtask bench SUITE --out DIR`.

mod clock;
mod contender;
mod guard;
mod machine;
mod memory;
mod peer;
mod redis;
mod report;
mod sqlite;
mod statistics;
mod watched;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::report::Report;

/// Measures lockkit beside the floor it stands on.
#[derive(Debug, Parser)]
enum Bench {
    /// The policy on the in-memory backend.
    Core(Options),
    /// Locks in an SQLite file, and the `lockkit` command.
    Sqlite(Options),
    /// Locks in a Redis server.
    Redis {
        #[command(flatten)]
        options: Options,
        #[command(flatten)]
        drivers: redis::Drivers,
        /// How often each subject runs; 5, or once in a smoke run.
        #[arg(long)]
        rounds: Option<usize>,
    },
    /// A part that needs a process of its own.
    #[command(hide = true, subcommand)]
    Part(Part),
}

#[derive(Debug, clap::Args)]
struct Options {
    /// A smoke run of a few seconds.
    #[arg(long)]
    quick: bool,
    /// Where the results go.
    #[arg(long)]
    out: PathBuf,
}

#[derive(Debug, Subcommand)]
enum Part {
    Holds { count: usize },
    Contender(contender::Target),
}

fn main() -> Result<()> {
    match Bench::parse() {
        Bench::Core(Options { quick, out }) => {
            let mut report = Report::new("core", quick, &out)?;
            memory::measure(&mut report)?;
            report.write()
        }
        Bench::Sqlite(Options { quick, out }) => {
            let mut report = Report::new("sqlite", quick, &out)?;
            sqlite::measure(&mut report)?;
            report.write()
        }
        Bench::Redis {
            options: Options { quick, out },
            drivers,
            rounds,
        } => {
            let mut report = Report::new("redis", quick, &out)?;
            let rounds = rounds.unwrap_or_else(|| report.pick(5, 1));
            redis::measure(&mut report, drivers, rounds)?;
            report.write()
        }
        Bench::Part(Part::Holds { count }) => memory::holds::part(count),
        Bench::Part(Part::Contender(target)) => contender::part(&target),
    }
}
