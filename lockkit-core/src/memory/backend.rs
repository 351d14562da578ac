//! The store and its clients.

use std::fs::File;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use foldhash::HashMap;

use super::entry::Entry;
use super::ticket::MemoryTicket;
use crate::{
    Backend, Claim, Clock, Descriptor, Error, ErrorKind, FenceClass, Guarantee, HoldId, Instant,
    Notices, Primitive, Released, Renewal, Resource, Result, Snapshot, Ticket,
};

static DESCRIPTOR: Descriptor = Descriptor {
    driver: "memory",
    guarantee: Guarantee::Linearizable,
    fence: FenceClass::Durable,
    primitives: &[Primitive::Mutex],
    ttl: Duration::from_millis(10)..=Duration::from_secs(24 * 60 * 60),
    fair: true,
    wake_up: "in process",
    after_crash: "gone with the process",
    clock: Clock::Tokio,
};

/// What a server would be: the locks that several [`Memory`] clients share.
///
/// # Examples
///
/// Two lockers, as two services would have:
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> lockkit_core::Result<()> {
/// use lockkit_core::{Locker, MemoryStore};
///
/// let store = MemoryStore::new();
/// let (one, other) = (Locker::new(store.backend())?, Locker::new(store.backend())?);
/// let guard = one.mutex("a").lock().await?;
/// assert!(other.mutex("a").try_lock().await?.is_none());
/// # drop(guard);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct MemoryStore(Arc<Mutex<Entries>>);

#[derive(Debug, Default)]
struct Entries {
    /// Only what is held or waited for: an idle resource has no entry.
    resources: HashMap<Resource, Entry>,
    /// One counter for all names, so that idle names need not be remembered: what rises for all
    /// rises for each.
    fences: u64,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A client of this store.
    #[must_use]
    pub fn backend(&self) -> Memory {
        Memory {
            store: self.clone(),
            notices: OnceLock::new(),
            closed: OnceLock::new(),
        }
    }

    /// Works on the entry of a resource, after ending the leases that have run out.
    pub(super) fn enter<T>(
        &self,
        resource: &Resource,
        work: impl FnOnce(&mut Entry, Instant, &mut u64) -> T,
    ) -> T {
        let now = Clock::Tokio.now();
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Entries { resources, fences } = &mut *entries;
        let Some(entry) = resources.get_mut(resource) else {
            // Nobody waits here yet, so there is nobody to ring.
            let mut entry = Entry::default();
            let result = work(&mut entry, now, fences);
            if !entry.is_idle() {
                resources.insert(resource.clone(), entry);
            }
            return result;
        };
        entry.expire(now, fences);
        let result = work(entry, now, fences);
        let rings = std::mem::take(&mut entry.rings);
        if entry.is_idle() {
            resources.remove(resource);
        }
        drop(entries);
        for waiter in rings {
            waiter.notify_one();
        }
        result
    }
}

/// A client of a [`MemoryStore`].
#[derive(Debug)]
pub struct Memory {
    store: MemoryStore,
    notices: OnceLock<Notices>,
    closed: OnceLock<()>,
}

impl Memory {
    /// The only client of a new store.
    #[must_use]
    pub fn new() -> Self {
        MemoryStore::new().backend()
    }

    /// What this backend promises.
    #[must_use]
    pub fn descriptor() -> &'static Descriptor {
        &DESCRIPTOR
    }

    fn renew_one(&self, id: &HoldId) -> Renewal {
        self.store.enter(id.resource(), |entry, now, _| {
            let held = entry
                .holds
                .iter_mut()
                .find(|held| held.attempt == id.attempt());
            let place = entry
                .queue
                .iter_mut()
                .find(|queued| queued.claim.attempt == id.attempt());
            let ttl = match (held, place) {
                (Some(held), _) => held.renew(now),
                (None, Some(place)) => place.renew(now),
                (None, None) => return Renewal::Gone,
            };
            Renewal::Renewed { sent_at: now, ttl }
        })
    }

    fn remove(&self, id: &HoldId) -> Result<Released> {
        let attempt = id.attempt();
        let removed = self.store.enter(id.resource(), |entry, now, fences| {
            entry.remove(attempt, now, fences)
        });
        Ok(if removed {
            Released::Done
        } else {
            Released::NotHeld
        })
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Backend for Memory {
    fn descriptor(&self) -> &Descriptor {
        &DESCRIPTOR
    }

    fn attach(&self, notices: Notices) {
        // Called once; a second sink would be a bug of the caller, and the first one stays.
        let _ = self.notices.set(notices);
    }

    fn enter(&self, claim: Claim) -> Result<Box<dyn Ticket>> {
        if self.closed.get().is_some() {
            let message = "this client was closed; take another from the store";
            return Err(Error::new(ErrorKind::Closed, message));
        }
        Ok(Box::new(MemoryTicket {
            store: self.store.clone(),
            claim,
            notices: self.notices.get().cloned().unwrap_or_default(),
            wake: None,
        }))
    }

    async fn renew(&self, ids: &[HoldId]) -> Vec<Renewal> {
        ids.iter().map(|id| self.renew_one(id)).collect()
    }

    async fn release(&self, ids: &[HoldId]) -> Vec<Result<Released>> {
        ids.iter().map(|id| self.remove(id)).collect()
    }

    async fn extend(&self, id: &HoldId, ttl: Duration) -> Renewal {
        self.store.enter(id.resource(), |entry, now, _| {
            let held = entry
                .holds
                .iter_mut()
                .find(|held| held.attempt == id.attempt());
            held.map_or(Renewal::Gone, |held| {
                held.detach(now, ttl);
                Renewal::Renewed { sent_at: now, ttl }
            })
        })
    }

    async fn inspect(&self, resource: &Resource) -> Result<Snapshot> {
        Ok(self
            .store
            .enter(resource, |entry, now, _| entry.snapshot(resource, now)))
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Snapshot>> {
        let mut resources: Vec<Resource> = {
            let entries = self.store.0.lock().unwrap_or_else(PoisonError::into_inner);
            let matches = |resource: &&Resource| resource.name().as_str().starts_with(prefix);
            entries.resources.keys().filter(matches).cloned().collect()
        };
        resources.sort();
        let mut snapshots = Vec::with_capacity(resources.len());
        for resource in &resources {
            snapshots.push(self.inspect(resource).await?);
        }
        snapshots.retain(|snapshot| !snapshot.is_idle());
        Ok(snapshots)
    }

    async fn evict(&self, id: &HoldId) -> Result<Released> {
        let notices = self.store.enter(id.resource(), |entry, _, _| {
            let held = entry
                .holds
                .iter()
                .find(|held| held.attempt == id.attempt())?;
            Some(held.notices.clone())
        });
        // Told first, then freed: the victim must not work beside its successor.
        if let Some(notices) = notices {
            notices.gone(id);
        }
        self.remove(id)
    }

    fn session_file(&self, _: &HoldId) -> Option<File> {
        None
    }

    async fn probe(&self) -> Result<Vec<(&'static str, String)>> {
        let entries = self.store.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(vec![("resources", entries.resources.len().to_string())])
    }

    async fn close(&self) -> Result<()> {
        let _ = self.closed.set(());
        Ok(())
    }
}
