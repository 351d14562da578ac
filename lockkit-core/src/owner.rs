//! Reentrancy by an explicit owner.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::hold::Hold;
use crate::{AttemptId, Resource};

/// An identity that may take a lock it already holds.
///
/// Async code has no thread identity: a task moves between threads and shares them. So who may
/// re-enter is said explicitly, by passing the same owner to
/// [`Mutex::owner`](crate::Mutex::owner). Clones are the same owner. The lock is let go when the
/// last of the owner's guards is.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> lockkit_core::Result<()> {
/// use lockkit_core::{Locker, Memory, Owner};
///
/// let locker = Locker::new(Memory::new())?;
/// let me = Owner::new();
/// let outer = locker.mutex("tree").owner(&me).lock().await?;
/// let inner = locker.mutex("tree").owner(&me).lock().await?; // does not wait for `outer`
/// assert_eq!(outer.fence(), inner.fence());
/// assert!(locker.mutex("tree").owner(&Owner::new()).try_lock().await?.is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Owner(AttemptId);

impl Owner {
    /// A new identity, different from every other.
    #[must_use]
    pub fn new() -> Self {
        Self(AttemptId::random())
    }
}

impl Default for Owner {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owner({:?})", self.0)
    }
}

/// What one owner holds of one resource. Locked across an acquire, so that two calls of one owner
/// do not wait for each other on the service.
pub(crate) type Held = Arc<tokio::sync::Mutex<Weak<Hold>>>;

/// The holds of this locker's owners.
#[derive(Debug, Default)]
pub(crate) struct Owners(Mutex<HashMap<(Resource, Owner), Held>>);

impl Owners {
    pub(crate) fn of(&self, resource: &Resource, owner: &Owner) -> Held {
        let key = (resource.clone(), owner.clone());
        Arc::clone(
            self.0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .entry(key)
                .or_default(),
        )
    }

    /// Calls [`tidy`](Self::tidy) when dropped.
    pub(crate) fn tidied_later<'a>(&'a self, resource: &'a Resource, owner: &'a Owner) -> Tidy<'a> {
        Tidy(self, resource, owner)
    }

    /// Forgets an owner that holds nothing and asks for nothing.
    pub(crate) fn tidy(&self, resource: &Resource, owner: &Owner) {
        let key = (resource.clone(), owner.clone());
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever is about to use the entry has a second reference to it.
        let idle = |entry: &Held| {
            Arc::strong_count(entry) == 1
                && entry
                    .try_lock()
                    .is_ok_and(|hold| hold.upgrade().is_none_or(|hold| hold.is_abandoned()))
        };
        if held.get(&key).is_some_and(idle) {
            held.remove(&key);
        }
    }
}

/// See [`Owners::tidied_later`].
pub(crate) struct Tidy<'a>(&'a Owners, &'a Resource, &'a Owner);

impl Drop for Tidy<'_> {
    fn drop(&mut self) {
        self.0.tidy(self.1, self.2);
    }
}
