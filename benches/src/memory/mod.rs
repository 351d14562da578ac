//! The suite `core`: what the policy costs when the backend costs nothing.

mod handover;
pub(crate) mod holds;
mod pair;
mod spawn;

use anyhow::Result;

use crate::report::Report;

/// Runs the whole suite.
pub(crate) fn measure(report: &mut Report) -> Result<()> {
    pair::measure(report)?;
    spawn::measure(report)?;
    holds::measure(report)?;
    handover::measure(report)
}
