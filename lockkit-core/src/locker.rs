//! The handle that applications keep.

use std::sync::Arc;

use crate::core::Core;
use crate::{
    Backend, Descriptor, Latch, LockerOptions, MultiLock, Mutex, Primitive, ReadWriteLock, Result,
    SegmentedLock, Semaphore,
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
    pub(crate) core: Arc<Core>,
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
        Self::with_backend(Arc::new(backend), options)
    }

    /// The same for a backend that is chosen while the program runs.
    ///
    /// # Errors
    ///
    /// As [`with_options`](Self::with_options).
    pub fn with_backend(backend: Arc<dyn Backend>, options: LockerOptions) -> Result<Self> {
        Ok(Self {
            core: Core::new(backend, options)?,
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
