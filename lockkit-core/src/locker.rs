//! The handle that applications keep.

use std::sync::Arc;
use std::time::Duration;

use crate::core::Core;
use crate::hold::LossReason;
use crate::part::lost;
use crate::releasing::Releasing;
use crate::{
    Backend, Descriptor, HoldId, Latch, LockerOptions, MultiLock, Mutex, Primitive, ReadWriteLock,
    Released, Renewal, Resource, Result, SegmentedLock, Semaphore, Snapshot,
};

/// Locks on one backend. Clones share everything: sessions, connections and the watchdog.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> lockkit_core::Result<()> {
/// use lockkit_core::{Locker, Memory};
///
/// let locker = Locker::new(Memory::new())?;
/// let guard = locker.mutex("orders/42").lock().await?;
/// assert!(locker.mutex("orders/42").try_lock().await?.is_none());
/// drop(guard);
/// locker.close().await
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Locker {
    core: Arc<Core>,
}

impl Locker {
    /// Locks on `backend`, with default options.
    ///
    /// Captures the current tokio runtime: background renewals run there, and so does what a
    /// dropped future leaves to be finished. When that runtime ends, held locks are lost at the
    /// end of their leases.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidConfig`](crate::ErrorKind::InvalidConfig) outside a tokio runtime.
    pub fn new(backend: impl Backend) -> Result<Self> {
        let mut options = LockerOptions::default();
        let range = &backend.descriptor().ttl;
        options.ttl = options.ttl.clamp(*range.start(), *range.end());
        Self::with_options(backend, options)
    }

    /// Locks on `backend`, with these options.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidConfig`](crate::ErrorKind::InvalidConfig) outside a tokio runtime, [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if an
    /// option is out of range.
    pub fn with_options(backend: impl Backend, options: LockerOptions) -> Result<Self> {
        Ok(Self {
            core: Core::new(Arc::new(backend), options)?,
        })
    }

    /// What the backend promises.
    #[must_use]
    pub fn descriptor(&self) -> &Descriptor {
        self.core.backend.descriptor()
    }

    /// Checks at start-up that the backend offers what the program needs.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported), naming backend and primitive.
    pub fn require(&self, primitive: Primitive) -> Result<()> {
        self.descriptor().require(primitive)
    }

    /// The lock of this name, to be configured and taken.
    ///
    /// Cheap, and no I/O; the same name gives the same lock everywhere. A name that is empty or
    /// too long is an error when the lock is taken.
    pub fn mutex(&self, name: impl AsRef<str>) -> Mutex {
        Mutex::new(&self.core, name)
    }

    /// The read-write lock of this name, to be configured and taken by one of its halves.
    ///
    /// Cheap, and no I/O; a bad name is an error when it is taken.
    pub fn read_write(&self, name: impl AsRef<str>) -> ReadWriteLock {
        ReadWriteLock::new(&self.core, name)
    }

    /// The semaphore of this name, with so many permits in all.
    ///
    /// Cheap, and no I/O; a bad name or limit is an error when a permit is taken.
    pub fn semaphore(&self, name: impl AsRef<str>, limit: u32) -> Semaphore {
        Semaphore::new(&self.core, name, limit)
    }

    /// The lock of this name in so many segments.
    ///
    /// Cheap, and no I/O; a bad name or number is an error when a segment is taken.
    pub fn segmented(&self, name: impl AsRef<str>, segments: u32) -> SegmentedLock {
        SegmentedLock::new(&self.core, name, segments)
    }

    /// The latch of this name, to be set, counted down and waited for.
    ///
    /// Cheap, and no I/O; a bad name is an error when it is used.
    pub fn latch(&self, name: impl AsRef<str>) -> Latch {
        Latch::new(&self.core, name)
    }

    /// The mutexes of all these names as one lock: all or nothing. See [`MultiLock`], which joins
    /// locks of several lockers too.
    ///
    /// Cheap, and no I/O; a bad name, or none at all, is an error when it is taken.
    pub fn multi_lock<N: AsRef<str>>(&self, names: impl IntoIterator<Item = N>) -> MultiLock {
        MultiLock::across(names.into_iter().map(|name| self.mutex(name)))
    }

    /// Renews a detached hold: it now runs out `ttl` from now. From any process.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Lost`](crate::ErrorKind::Lost) if the hold had run out, or was released or broken;
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if `ttl` is out of range; [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) if the
    /// backend did not confirm, in which case the old expiry may still hold.
    ///
    /// # Cancel safety
    ///
    /// The renewal may or may not have taken effect.
    pub async fn renew(&self, id: &HoldId, ttl: Duration) -> Result<()> {
        self.core.check_not_closed()?;
        self.descriptor().check_ttl(ttl)?;
        match self
            .core
            .bounded(async { Ok(self.core.backend.extend(id, ttl).await) })
            .await?
        {
            Renewal::Renewed { .. } => Ok(()),
            Renewal::Gone => Err(lost(&self.core, id.resource().name(), LossReason::Gone)),
            Renewal::Unknown(error) => Err(error),
        }
    }

    /// Releases a hold by its id, from any process. A foreign, late or unknown id frees nothing
    /// and is answered with [`Released::NotHeld`].
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) if the backend did not confirm; it is then repeated in the
    /// background.
    ///
    /// # Cancel safety
    ///
    /// Once this was polled the hold is let go.
    pub async fn release(&self, id: &HoldId) -> Result<Released> {
        self.core.check_not_closed()?;
        // A guard of it in this process must not believe in it any more.
        if !self.core.watchdog.let_go(id) {
            return Ok(Released::Done); // A claim of ours, about to withdraw.
        }
        let ttl = self.core.options.call_timeout;
        self.core
            .bounded(Releasing::new(&self.core, id.clone(), ttl))
            .await
    }

    /// Who holds and who waits for one resource.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) if the backend does not answer.
    ///
    /// # Cancel safety
    ///
    /// Reads only.
    pub async fn inspect(&self, resource: &Resource) -> Result<Snapshot> {
        self.core.check_not_closed()?;
        self.core.bounded(self.core.backend.inspect(resource)).await
    }

    /// Who holds and who waits, for each name that begins with `prefix`; the empty prefix is all.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) if the backend does not answer.
    ///
    /// # Cancel safety
    ///
    /// Reads only.
    pub async fn list(&self, prefix: &str) -> Result<Vec<Snapshot>> {
        self.core.check_not_closed()?;
        self.core.bounded(self.core.backend.list(prefix)).await
    }

    /// Takes a hold away from its holder. The holder's guard is lost, at once if its process can
    /// be reached; it may go on working until it notices, so guard what matters with the fence.
    /// Exactly this hold: others of the same name keep theirs. The id of a place in line takes
    /// that away. An [audit event](crate::observability) records who did it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) if the backend did not confirm.
    ///
    /// # Cancel safety
    ///
    /// The eviction may or may not have taken effect.
    pub async fn evict(&self, id: &HoldId) -> Result<Released> {
        self.core.check_not_closed()?;
        let core = &self.core;
        let mut before = None;
        if core.observer.audits() {
            // For the record only: that it fails is no reason not to evict.
            before = core.bounded(core.backend.inspect(id.resource())).await.ok();
        }
        let outcome = core.bounded(core.backend.evict(id)).await;
        core.observer
            .evicted(id, &core.label, before.as_ref(), &outcome);
        outcome
    }

    /// Asks every live holder of a resource to let go; how many were asked.
    ///
    /// It is a request: their guards tell whoever waits for
    /// [`Guard::revocation_requested`](crate::Guard::revocation_requested), and nothing else
    /// happens. Detached holds have nobody to ask.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) if the backend did not confirm; some may have been asked.
    ///
    /// # Cancel safety
    ///
    /// They may or may not have been asked.
    pub async fn request_release(&self, resource: &Resource) -> Result<usize> {
        self.core.check_not_closed()?;
        let asked = self.core.backend.request_release(resource);
        let asked = self.core.bounded(asked).await?;
        self.core.observer.asked(resource, &self.core.label, asked);
        Ok(asked)
    }

    /// Asks the service whether it is well: facts as name and value, for people.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) if it is not.
    ///
    /// # Cancel safety
    ///
    /// Reads only.
    pub async fn probe(&self) -> Result<Vec<(&'static str, String)>> {
        self.core.check_not_closed()?;
        self.core.bounded(self.core.backend.probe()).await
    }

    /// Ends this locker and all its clones, and proves that every release was sent.
    ///
    /// New claims are refused and waiting ones withdrawn, with [`ErrorKind::Closed`](crate::ErrorKind::Closed). Guards that
    /// are still alive are lost, told so first, and then released: let work finish before. Returns
    /// when the service has answered every release, and ends the backend.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) if the service did not confirm a release within
    /// [`call_timeout`](LockerOptions::call_timeout); what is left frees itself at the end of its
    /// lease.
    ///
    /// # Cancel safety
    ///
    /// The locker is closed from the first poll on; only the proof is lost.
    pub async fn close(&self) -> Result<()> {
        self.core.close().await
    }
}
