//! Who holds a name, whatever the kind of lock.

use lockkit::{Holder, LockName, Locker, Primitive, Resource, Snapshot};

use crate::args::KindWord;
use crate::exit::Failure;

/// Looks at every kind of lock of this name that can be held, or at one.
///
/// # Errors
///
/// The backend does not offer `kind`, or does not answer.
pub(crate) async fn of(
    locker: &Locker,
    name: &LockName,
    kind: Option<KindWord>,
) -> Result<Held, Failure> {
    let kinds = match kind {
        Some(kind) => {
            locker.require(kind.primitive())?;
            vec![kind.primitive()]
        }
        None => locker.descriptor().primitives.to_vec(),
    };
    let mut snapshots = Vec::with_capacity(kinds.len());
    for kind in kinds.into_iter().filter(|&kind| kind != Primitive::Latch) {
        let resource = Resource::new(kind, name.clone());
        snapshots.push(locker.inspect(&resource).await?);
    }
    Ok(Held { snapshots })
}

/// One name, as each kind of lock.
#[derive(Debug)]
pub(crate) struct Held {
    snapshots: Vec<Snapshot>,
}

impl Held {
    /// The locks of this name that somebody holds.
    pub(crate) fn resources(&self) -> impl Iterator<Item = &Resource> {
        let held = self.snapshots.iter().filter(|s| !s.holders.is_empty());
        held.map(|snapshot| &snapshot.resource)
    }

    /// Those who hold it.
    pub(crate) fn holders(&self) -> impl Iterator<Item = &Holder> {
        self.snapshots.iter().flat_map(|snapshot| &snapshot.holders)
    }
}
