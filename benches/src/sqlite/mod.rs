//! The suite `sqlite`: locks in a file, and the `lockkit` command.

mod busy;
mod command;
mod files;
mod floor;
mod handover;
mod kill;
mod pair;
mod renewal;

use anyhow::Result;

use crate::report::Report;

/// Runs the whole suite.
pub(crate) fn measure(report: &mut Report) -> Result<()> {
    pair::measure(report)?;
    busy::measure(report)?;
    renewal::measure(report)?;
    handover::measure(report)?;
    kill::measure(report)?;
    command::measure(report)
}
