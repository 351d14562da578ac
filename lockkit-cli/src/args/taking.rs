//! How to take a lock.

use std::time::Duration;

use clap::Args as ClapArgs;

use crate::{duration, exit};

/// The heading over the options that choose a kind.
const KIND: &str = "Kind of lock (one holder at a time without any of these)";

/// How to take a lock.
#[derive(Debug, ClapArgs)]
pub(crate) struct Taking {
    /// Name of the lock: any text of 1 to 200 bytes
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) patience: Patience,
    /// The lease: how long the lock outlives a holder that is cut off
    #[arg(short, long, value_name = "DUR", default_value = "30s", value_parser = duration::parse)]
    pub(crate) ttl: Duration,
    /// Wait in strict order of arrival, which the kinds below always do
    #[arg(long)]
    pub(crate) fair: bool,
    /// Who holds the lock, for people [default: the name of the program]
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Option<String>,
    #[command(flatten)]
    pub(crate) choice: Choice,
}

/// How long to wait.
#[derive(Debug, ClapArgs)]
pub(crate) struct Patience {
    /// Give up after this long; 0 tries once [default: wait for ever]
    #[arg(short, long, value_name = "DUR", value_parser = duration::parse)]
    pub(crate) wait: Option<Duration>,
    /// Give up at once instead of waiting
    #[arg(short, long, conflicts_with = "wait")]
    pub(crate) no_wait: bool,
    /// Exit code for having given up
    #[arg(short = 'E', long, value_name = "N", default_value_t = exit::CONFLICT)]
    pub(crate) conflict_exit_code: u8,
}

/// Which kind of lock. Each kind has names of its own.
#[derive(Debug, ClapArgs)]
#[group(skip)]
pub(crate) struct Choice {
    /// Together with other --shared holders; excludes --exclusive ones, not plain ones
    #[arg(long, group = "kind", help_heading = KIND)]
    pub(crate) shared: bool,
    /// Alone; excludes --shared and other --exclusive holders, not plain ones
    #[arg(long, group = "kind", help_heading = KIND)]
    pub(crate) exclusive: bool,
    /// Take this many of the permits of NAME [default with --of: 1]
    #[arg(
        long,
        group = "kind",
        requires = "of",
        value_name = "N",
        value_parser = count, allow_negative_numbers = true,
        help_heading = KIND
    )]
    pub(crate) permits: Option<u32>,
    /// How many permits NAME has in all, or segments with --segment-of
    #[arg(
        long,
        conflicts_with_all = ["shared", "exclusive", "any_of"],
        value_name = "M",
        value_parser = count, allow_negative_numbers = true,
        help_heading = KIND
    )]
    pub(crate) of: Option<u32>,
    /// Take any free one of the M segments of NAME; CMD finds which, from 0 on, in LOCKKIT_SEGMENT
    #[arg(long, group = "kind", value_name = "M", value_parser = count, allow_negative_numbers = true, help_heading = KIND)]
    pub(crate) any_of: Option<u32>,
    /// Take the segment that KEY belongs to, of those that --of says
    #[arg(long, group = "kind", requires = "of", value_name = "KEY", help_heading = KIND)]
    pub(crate) segment_of: Option<String>,
}

/// Reads a number of permits, segments or participants.
pub(super) fn count(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|&number| number > 0);
    number.ok_or_else(|| format!("write a whole number from 1 to {}", u32::MAX))
}
