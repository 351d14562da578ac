//! What a server would be: the resources that several clients share.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use foldhash::HashMap;
use tokio::sync::Notify;

use super::backend::Memory;
use super::entry::{Entry, Step};
use crate::{Claim, Clock, Grant, Instant, Notices, Resource, Result, Together};

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
    /// Only what is held, waited for, or has something to remember: an idle mutex has no entry.
    resources: HashMap<Resource, Entry>,
    /// One counter for all names, so that idle mutexes need not be remembered: what rises for all
    /// rises for each.
    fences: u64,
}

/// Whom to ring once the store's lock is let go: a waker may come back to it.
type Rings = Vec<Arc<Notify>>;

impl Entries {
    /// Works on the entry of a resource, after ending the leases that have run out.
    fn work<T>(
        &mut self,
        resource: &Resource,
        now: Instant,
        rings: &mut Rings,
        work: impl FnOnce(&mut Entry, &mut Step<'_>) -> T,
    ) -> T {
        let Self { resources, fences } = self;
        let mut step = Step { now, fences, rings };
        let Some(entry) = resources.get_mut(resource) else {
            let mut entry = Entry::new(resource.primitive());
            let result = work(&mut entry, &mut step);
            if !entry.is_forgettable() {
                resources.insert(resource.clone(), entry);
            }
            return result;
        };
        entry.expire(&mut step);
        let result = work(entry, &mut step);
        if entry.is_forgettable() {
            resources.remove(resource);
        }
        result
    }
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

    /// Works on the entry of a resource.
    pub(super) fn enter<T>(
        &self,
        resource: &Resource,
        work: impl FnOnce(&mut Entry, &mut Step<'_>) -> T,
    ) -> T {
        self.locked(|entries, now, rings| entries.work(resource, now, rings, work))
    }

    /// Grants all claims if each of them could enter at this moment.
    pub(super) fn enter_all(&self, claims: &[Claim], notices: &Notices) -> Result<Together> {
        self.locked(|entries, now, rings| {
            for claim in claims {
                let resource = &claim.resource;
                let enters =
                    entries.work(resource, now, rings, |entry, _| entry.would_enter(claim))?;
                if !enters {
                    return Ok(Together::Busy);
                }
            }
            let mut grants: Vec<Grant> = Vec::with_capacity(claims.len());
            for claim in claims {
                let grant = entries.work(&claim.resource, now, rings, |entry, step| {
                    entry.attempt(claim, &mut None, notices, step)
                })?;
                grants.extend(grant);
            }
            Ok(Together::Held(grants))
        })
    }

    /// The resources that satisfy a condition, sorted.
    pub(super) fn resources(&self, wanted: impl Fn(&Resource) -> bool) -> Vec<Resource> {
        let mut found: Vec<Resource> = self.locked(|entries, _, _| {
            let resources = entries.resources.keys();
            resources
                .filter(|resource| wanted(resource))
                .cloned()
                .collect()
        });
        found.sort();
        found
    }

    fn locked<T>(&self, work: impl FnOnce(&mut Entries, Instant, &mut Rings) -> T) -> T {
        let now = Clock::Tokio.now();
        let mut rings = Rings::new();
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let result = work(&mut entries, now, &mut rings);
        drop(entries);
        for waiter in rings {
            waiter.notify_one();
        }
        result
    }
}
