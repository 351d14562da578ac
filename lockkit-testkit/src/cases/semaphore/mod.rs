//! n permits.

mod ending;
mod limits;
mod taking;

use lockkit_core::{ErrorKind, Mode, Primitive, Resource, Snapshot};

use crate::failure::ensure;
use crate::fixture::{resource, unlock};
use crate::{Case, Client, Failure, Outcome};

pub(super) fn cases() -> Vec<Case> {
    [taking::cases(), limits::cases(), ending::cases()].concat()
}

fn semaphore(name: &str) -> Outcome<Resource> {
    resource(Primitive::Semaphore, name)
}

/// How many permits are out.
fn taken(snapshot: &Snapshot) -> u32 {
    let counts = snapshot.holders.iter().map(|holder| match holder.mode {
        Mode::Permits { count, .. } => count,
        _ => 0,
    });
    counts.sum()
}

/// Whether `available` permits are free by every account: that of the service, that of a try for
/// one too many, and that of a try for all of them.
async fn available(client: &Client, name: &str, limit: u32, available: u32) -> Outcome {
    let lock = client.semaphore(name, limit);
    let free = lock.available().await?;
    ensure!(
        free == available,
        "{free} permits are free, not {available}"
    );
    if available < limit {
        let tried = lock.try_acquire_many(available + 1).await?;
        ensure!(tried.is_none(), "{} of {available} taken", available + 1);
    }
    if available > 0 {
        let tried = lock.try_acquire_many(available).await?;
        let tried = tried.ok_or_else(|| Failure::new(format!("{available} free and refused")))?;
        unlock(tried).await?;
    }
    Ok(())
}

/// Refused with this kind of error.
#[track_caller]
fn refused<T>(answer: lockkit_core::Result<T>, kind: ErrorKind, what: &str) -> Outcome {
    match answer {
        Err(error) if error.kind() == kind => Ok(()),
        Err(error) => Err(Failure::new(format!("{what}: {error}"))),
        Ok(_) => Err(Failure::new(format!("{what} was accepted"))),
    }
}
