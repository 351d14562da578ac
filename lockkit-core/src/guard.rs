//! A held lock.

use std::fmt;
use std::fs::File;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::core::Core;
use crate::hold::{Hold, LossReason};
use crate::releasing::Releasing;
use crate::{
    Clock, Error, ErrorKind, Fence, HoldId, Instant, LockName, Owner, Released, Renewal, Result,
};

/// What [`Guard::unlock`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a lock that was lost may have let somebody else in"]
pub enum Unlocked {
    /// The lock was ours until now.
    Clean,
    /// It had been lost before; somebody else may have held it meanwhile.
    Lost(LossReason),
}

/// A held lock. Owned, `Send`, `Sync` and `'static`; dropping it releases.
///
/// The watchdog renews the lease in the background. If that fails for too long, or the service
/// says that the hold is gone, the guard is *lost*, for good, and says so before the service can
/// let somebody else in. A process that was stopped (a debugger, a paused virtual machine) learns
/// that only when it runs again: guard what must not be written late with [`fence`](Self::fence).
///
/// Release on drop is not immediate: the release is queued and sent by the watchdog, from any
/// thread, with or without a runtime. [`unlock`](Self::unlock) waits for it and tells whether the
/// lock was still ours. Beware of `let _ = mutex.lock().await?`, which drops the guard at once.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> lockkit_core::Result<()> {
/// use lockkit_core::{Locker, Memory, Unlocked};
///
/// let locker = Locker::new(Memory::new())?;
/// let guard = locker.mutex("orders/42").lock().await?;
/// let receipt = guard.while_held(async { "shipped" }).await?;
/// assert_eq!(guard.unlock().await?, Unlocked::Clean);
/// # assert_eq!(receipt, "shipped");
/// # Ok(())
/// # }
/// ```
#[must_use = "the lock is released as soon as the guard is dropped"]
pub struct Guard {
    hold: Arc<Hold>,
    core: Arc<Core>,
    ttl: Duration,
    owner: Option<Owner>,
    /// Whether dropping still has to release.
    armed: bool,
    /// Whether nobody can share the hold any more, so that this guard does not count.
    secluded: bool,
}

impl Guard {
    pub(crate) const fn new(
        core: Arc<Core>,
        hold: Arc<Hold>,
        ttl: Duration,
        owner: Option<Owner>,
    ) -> Self {
        Self {
            hold,
            core,
            ttl,
            owner,
            armed: true,
            secluded: false,
        }
    }

    /// The name of the lock.
    #[must_use]
    pub fn name(&self) -> &LockName {
        self.hold.id.resource().name()
    }

    /// The id of this hold. It is a capability: whoever has it can release the lock.
    #[must_use]
    pub fn id(&self) -> &HoldId {
        &self.hold.id
    }

    /// The fencing token: greater than that of every earlier holder of this name.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.hold.fence
    }

    /// Whether the lock is ours at this moment. No I/O: compares the clock with the deadline of
    /// the last confirmed renewal. Once `false`, it stays so.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.hold.is_held()
    }

    /// The moment from which the lock must not be relied on, unless a renewal moves it.
    #[must_use]
    pub fn valid_until(&self) -> Instant {
        self.hold.valid_until()
    }

    /// The time left until [`valid_until`](Self::valid_until).
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.hold.remaining()
    }

    /// The clock of [`valid_until`](Self::valid_until).
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.core.clock
    }

    /// Waits until the lock is lost, and says why. Returns at once if it was lost before.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn lost(&self) -> LossReason {
        loop {
            if let Some(reason) = self.hold.loss() {
                return reason;
            }
            // The watchdog tells, unless the runtime on which it lives has ended or is stuck.
            let look_again = self.hold.remaining().min(Duration::from_secs(1));
            tokio::select! {
                () = self.hold.token().cancelled() => {}
                () = tokio::time::sleep(look_again) => {}
            }
        }
    }

    /// A token that is cancelled when the lock is lost. Cancelling it yourself changes nothing
    /// but your copy.
    #[must_use]
    pub fn cancellation_token(&self) -> CancellationToken {
        self.hold.token().child_token()
    }

    /// Runs `work` while the lock is held, and drops it where it stands when the lock is lost.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Lost`] if the lock was lost before `work` was done.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `work`; the guard stays.
    pub async fn while_held<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        let done = tokio::select! {
            biased;
            _ = self.lost() => None,
            done = work => Some(done),
        };
        match done {
            Some(done) if self.is_held() => Ok(done),
            _ => Err(self.lost_error()),
        }
    }

    /// Releases the lock and tells whether it was still ours.
    ///
    /// For a reentrant owner only the last guard releases; the others just end.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unavailable`] if the service did not confirm in time. The release is then
    /// repeated in the background until the lease has run out.
    ///
    /// # Cancel safety
    ///
    /// Once this was called the lock is let go, whether or not the future is awaited to its end.
    pub async fn unlock(mut self) -> Result<Unlocked> {
        self.armed = false;
        let _open = self.core.under_way();
        if !self.hold.unshare() {
            return Ok(self.hold.loss().map_or(Unlocked::Clean, Unlocked::Lost));
        }
        let ended = self.hold.end_by_release();
        self.core.watchdog.forget(&self.hold.id);
        self.forget_owner();
        if let Err(reason) = ended {
            self.core
                .watchdog
                .release_later(self.hold.id.clone(), self.ttl);
            return Ok(Unlocked::Lost(reason));
        }
        let releasing = Releasing::new(&self.core, self.hold.id.clone(), self.ttl);
        match self.core.bounded(releasing).await? {
            Released::Done => Ok(Unlocked::Clean),
            Released::NotHeld => Ok(Unlocked::Lost(LossReason::Gone)),
        }
    }

    /// Lets the hold outlive this guard and this process: from now on it lives by its own expiry,
    /// `ttl` from now, without a watchdog, and is renewed or released by its id from any process,
    /// through [`Locker::renew`](crate::Locker::renew) and
    /// [`Locker::release`](crate::Locker::release).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] if `ttl` is out of range or the owner holds other guards of
    /// this lock; [`ErrorKind::Lost`] if the lock was lost before; [`ErrorKind::Unavailable`] if
    /// the service did not confirm. After an error the lock is released.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future releases the lock.
    pub async fn detach(mut self, ttl: Duration) -> Result<HoldId> {
        self.core.backend.descriptor().check_ttl(ttl)?;
        let _open = self.core.under_way();
        if !self.hold.seclude() {
            let message = "this owner holds other guards of the lock; drop those first";
            return Err(self.core.error(ErrorKind::InvalidArgument, message));
        }
        self.secluded = true;
        if self.hold.loss().is_some() {
            return Err(self.lost_error());
        }
        // If nobody knows how this ends, it has to be undone for as long as it may live.
        self.ttl = self.ttl.max(ttl);
        let extend = async { Ok(self.core.backend.extend(&self.hold.id, ttl).await) };
        match self.core.bounded(extend).await? {
            Renewal::Renewed { .. } => {}
            Renewal::Gone => {
                self.hold.lose(LossReason::Gone);
                return Err(self.lost_error());
            }
            Renewal::Unknown(error) => return Err(error),
        }
        if self.hold.end_by_release().is_err() {
            // It was told as lost meanwhile, and so it is released.
            return Err(self.lost_error());
        }
        self.armed = false;
        self.core.watchdog.forget(&self.hold.id);
        self.forget_owner();
        Ok(self.hold.id.clone())
    }

    /// The OS file lock that shows this process to be alive, where the backend keeps one.
    ///
    /// A child process that inherits it keeps the lock from being freed when this process dies,
    /// until the child has ended too or the lease runs out.
    #[must_use]
    pub fn session_file(&self) -> Option<File> {
        self.core.backend.session_file(&self.hold.id)
    }

    fn lost_error(&self) -> Error {
        let reason = self.hold.loss().unwrap_or(LossReason::Expired);
        lost(&self.core, self.name(), reason).with("fence", self.fence())
    }

    fn forget_owner(&self) {
        if let Some(owner) = &self.owner {
            self.core.owners.tidy(self.hold.id.resource(), owner);
        }
    }
}

pub(crate) fn lost(core: &Core, name: &LockName, reason: LossReason) -> Error {
    let message = format!("{reason}; stop the work, and take the lock again to go on");
    core.error(ErrorKind::Lost, message).with("name", name)
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.armed && (self.secluded || self.hold.unshare()) {
            // However it ended, nobody may believe in it any more, and the service is told.
            let _ = self.hold.end_by_release();
            self.core
                .watchdog
                .release_later(self.hold.id.clone(), self.ttl);
            self.forget_owner();
        }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.hold, f)
    }
}
