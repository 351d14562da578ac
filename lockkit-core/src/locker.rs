//! The handle that applications keep.

use std::sync::Arc;
use std::time::Duration;

use crate::core::Core;
use crate::guard::lost;
use crate::hold::LossReason;
use crate::releasing::Releasing;
use crate::{
    Backend, Descriptor, HoldId, LockName, LockerOptions, Mutex, Primitive, Released, Renewal,
    Resource, Result, Snapshot,
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
        Mutex::new(Arc::clone(&self.core), LockName::new(name))
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
        self.open()?;
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
        self.open()?;
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
        self.open()?;
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
        self.open()?;
        self.core.bounded(self.core.backend.list(prefix)).await
    }

    /// Takes a hold away from its holder. The holder's guard is lost, at once if its process can
    /// be reached; it may go on working until it notices, so guard what matters with the fence.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) if the backend did not confirm.
    ///
    /// # Cancel safety
    ///
    /// The eviction may or may not have taken effect.
    pub async fn evict(&self, id: &HoldId) -> Result<Released> {
        self.open()?;
        self.core.bounded(self.core.backend.evict(id)).await
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
        self.open()?;
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

    fn open(&self) -> Result<()> {
        if self.core.closed.is_cancelled() {
            return Err(self.core.closed_error());
        }
        Ok(())
    }
}
