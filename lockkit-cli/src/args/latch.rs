//! The commands of a latch.

use clap::{Args as ClapArgs, Subcommand};

use super::Patience;
use super::taking::count;

/// Wait until others have come: a count that opens at zero
///
/// Somebody sets the count, each participant counts it down once, and whoever waits goes on when
/// it is zero, at once if it is zero already.
#[derive(Debug, Subcommand)]
pub(crate) enum LatchCommand {
    /// Set how many are to come; closes a latch that is open
    ///
    /// Exits with 75 while the latch is closed, for somebody may be counting.
    Set(Set),
    /// Count down by one, and print how many are still to come
    ///
    /// Exits with 75 if the latch is not set.
    Down(Down),
    /// Wait until the latch is open
    ///
    /// A latch that is not set is not open.
    Wait(Wait),
    /// Show the count, and who waits
    Show(LatchName),
    /// Make the latch as if it had never been set
    ///
    /// Exits with 75 while the latch is closed, for somebody may be counting.
    Reset(LatchName),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct LatchName {
    /// Name of the latch: any text of 1 to 200 bytes
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Set {
    #[command(flatten)]
    pub(crate) name: LatchName,
    /// How many are to come
    #[arg(value_name = "COUNT", value_parser = count, allow_negative_numbers = true)]
    pub(crate) count: u32,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Down {
    #[command(flatten)]
    pub(crate) name: LatchName,
    /// Who has come: counts once however often it is repeated [default: somebody new each time]
    #[arg(long = "as", value_name = "ID")]
    pub(crate) participant: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Wait {
    #[command(flatten)]
    pub(crate) name: LatchName,
    #[command(flatten)]
    pub(crate) patience: Patience,
    /// Who waits, for people
    #[arg(long, value_name = "TEXT", default_value = "lockkit latch wait")]
    pub(crate) label: String,
}
