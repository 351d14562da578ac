//! The suite `core`: what the policy costs when the backend costs nothing.

mod crowd;
mod handover;
pub(crate) mod holds;
mod multi_lock;
mod pair;
mod read_write;
mod semaphore;
mod spawn;

use anyhow::Result;

use crate::report::Report;

/// Runs the whole suite.
pub(crate) fn measure(report: &mut Report) -> Result<()> {
    pair::measure(report)?;
    spawn::measure(report)?;
    holds::measure(report)?;
    handover::measure(report)?;
    read_write::measure(report)?;
    semaphore::measure(report)?;
    multi_lock::measure(report)
}
