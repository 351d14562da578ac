//! Looking, for people.

use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::iter;
use lockkit_core::{Error, ErrorKind, Primitive, Resource, Result, Snapshot};

use super::descriptor::DRIVER;
use super::record::Record;
use crate::error::{odd, translated};
use crate::shared::Shared;
use crate::transport::{Errand, Lane, Reply, Request};

/// How many resources are looked at at a time.
const AT_ONCE: usize = 64;

/// Who holds a mutex; those who wait are not known. Two requests: a lock that changes hands in between
/// may be shown with what is left of the next lease.
pub(super) async fn inspect(shared: &Shared, resource: &Resource) -> Result<Snapshot> {
    let mut snapshot = Snapshot::idle(resource.clone(), None);
    let held = ask(shared, resource, "GET").await?;
    if held == Reply::Nil {
        return Ok(snapshot);
    }
    let record = held.as_bytes().and_then(Record::parse);
    let record = record.ok_or_else(|| odd("an inspection"))?;
    let left = ask(shared, resource, "PTTL").await?;
    // -2 if it is gone by now.
    if let Some(left @ 0..) = left.as_int() {
        let remaining = Duration::from_millis(left.unsigned_abs());
        snapshot.holders.push(record.holder(resource, remaining));
    }
    Ok(snapshot)
}

async fn ask(shared: &Shared, resource: &Resource, command: &str) -> Result<Reply> {
    let keys = shared.prefix.keys(resource);
    let request = Request::new(command).arg(keys.main());
    let errand = Errand::Command(keys.bucket, &request);
    let reply = shared.route.run(Lane::Work, &errand).await?;
    reply.map_err(translated)
}

/// The same for each mutex that is held and whose name begins so.
pub(super) async fn list(shared: &Shared, prefix: &str) -> Result<Vec<Snapshot>> {
    let kind = Primitive::Mutex.to_string();
    let resources = shared.resources(&kind, prefix).await;
    let resources = resources.map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => {
            let message = "this user may not list keys; grant it with `ACL SETUSER NAME +scan`, or \
                           look at one lock by its name";
            Error::new(ErrorKind::PermissionDenied, message)
                .on(DRIVER)
                .because(error)
        }
        _ => error,
    })?;
    let looks = iter(resources).map(|resource| async move { inspect(shared, &resource).await });
    let mut looks = pin!(looks.buffered(AT_ONCE));
    let mut snapshots = Vec::new();
    while let Some(snapshot) = looks.next().await {
        snapshots.push(snapshot?);
    }
    snapshots.retain(|snapshot| !snapshot.is_idle());
    Ok(snapshots)
}
