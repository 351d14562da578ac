//! Letting go of a lock in a measurement.

use anyhow::{Result, ensure};
use lockkit::{Guard, Unlocked};

/// Unlocks; that the lock was lost would make the figures worthless.
pub(crate) async fn unlock(guard: Guard) -> Result<()> {
    ensure!(
        guard.unlock().await? == Unlocked::Clean,
        "the lock was lost"
    );
    Ok(())
}
