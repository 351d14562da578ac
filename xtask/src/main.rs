//! The one command surface of this repository, for developers and for CI: `cargo xtask --help`.

mod bench;
mod check;
mod matrix;
mod peers;
mod servers;
mod steps;
mod test;
mod tools;
mod workspace;

use std::process::ExitCode;

use clap::Parser;

/// Checks, tests and measures lockkit.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Task {
    /// Formatting, lints, docs, licences, features: everything that needs no test run.
    Check,
    /// Installs and starts what the tests need, then runs unit, doc and conformance tests.
    Test,
    /// Installs, starts and ends the servers that tests need.
    #[command(subcommand)]
    Servers(servers::Task),
    /// Builds the benchmarks in release mode and runs one suite.
    Bench(bench::Args),
    /// Rewrites the support matrix in README.md from the backends' own descriptors.
    Matrix,
}

fn main() -> ExitCode {
    let outcome = match Task::parse() {
        Task::Check => check::run(),
        Task::Test => test::run(),
        Task::Servers(task) => servers::run(&task),
        Task::Bench(args) => bench::run(&args),
        Task::Matrix => matrix::run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Without the backtrace of this program, which is of no interest.
            eprintln!("\nError: {error:#}");
            ExitCode::FAILURE
        }
    }
}
