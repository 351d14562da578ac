//! The command line that `../SPEC.md` fixes.

use std::time::Duration;

use clap::{Parser, ValueEnum};

/// Runs one workload on one lock library and prints one line of JSON.
#[derive(Clone, Debug, Parser)]
pub(crate) struct Options {
    /// The library.
    #[arg(long)]
    pub(crate) peer: String,
    /// host:port, several separated by commas.
    #[arg(long)]
    pub(crate) server: String,
    /// What to do with it.
    #[arg(long)]
    pub(crate) workload: Workload,
    /// Independent client objects.
    #[arg(long, default_value_t = 1)]
    pub(crate) clients: usize,
    /// Concurrent users of each client.
    #[arg(long, default_value_t = 1)]
    pub(crate) tasks: usize,
    /// Counted seconds, after the warm-up.
    #[arg(long, default_value_t = 5)]
    pub(crate) seconds: u64,
    /// The name of the lock.
    #[arg(long, default_value = "bench")]
    pub(crate) key: String,
    /// The lease in seconds.
    #[arg(long, default_value = "10", value_parser = seconds)]
    pub(crate) ttl: Duration,
    /// When counting begins, in nanoseconds since 1970, so that several drivers count together;
    /// else one second after everything is connected.
    #[arg(long, value_name = "NANOS")]
    pub(crate) begin: Option<u64>,
}

/// One operation of each is described in `../SPEC.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Workload {
    Pair,
    Contend,
    Fair,
    Tryheld,
    Distinct,
    Hold,
    Wait,
}

impl Workload {
    /// Whether all tasks want the same lock.
    pub(crate) fn is_contended(self) -> bool {
        matches!(self, Self::Contend | Self::Fair)
    }

    pub(crate) fn name(self) -> String {
        self.to_possible_value()
            .map(|value| value.get_name().to_owned())
            .unwrap_or_default()
    }
}

fn seconds(text: &str) -> Result<Duration, std::num::ParseIntError> {
    text.parse().map(Duration::from_secs)
}
