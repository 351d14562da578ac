//! Several names as one.

mod ending;
mod holding;

use crate::{Case, Client, Fixture, Outcome};

pub(super) fn cases() -> Vec<Case> {
    [holding::cases(), ending::cases()].concat()
}

/// Each of these names can be locked and nobody waits: nothing of a multi-lock is left.
async fn all_are_free(f: &Fixture, client: &Client, names: &[&str]) -> Outcome {
    for name in names {
        f.passes(&client.mutex(name)).await?;
        f.until(client, name, "idle", lockkit_core::Snapshot::is_idle)
            .await?;
    }
    Ok(())
}
