//! Runs the workloads of `../SPEC.md` on Rust's lock libraries, on lockkit, and on the bare clients
//! below them.

mod options;
mod peers;
mod records;
mod takeover;
mod witness;
mod workload;

use anyhow::Result;
use clap::Parser;

use crate::options::{Options, Workload};
use crate::peers::Peer;

#[tokio::main]
async fn main() -> Result<()> {
    peers::run_named(Options::parse()).await
}

/// Runs the workload on one peer; `krate` is the crate whose version is reported.
async fn run<P: Peer>(krate: &str, options: Options) -> Result<()> {
    match options.workload {
        Workload::Hold => takeover::hold::<P>(&options).await,
        Workload::Wait => takeover::wait::<P>(&options).await,
        _ => workload::measure::<P>(options, version_of(krate)).await,
    }
}

/// The version that Cargo.lock pins.
fn version_of(krate: &str) -> &'static str {
    let header = format!("name = \"{krate}\"\nversion = \"");
    include_str!("../Cargo.lock")
        .split_once(&header)
        .and_then(|(_, rest)| rest.split_once('"'))
        .map_or("?", |(version, _)| version)
}
