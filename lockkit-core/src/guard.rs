//! A held lock.

use std::fmt;
use std::fs::File;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::hold::{Hold, LossReason};
use crate::part::Part;
use crate::{Clock, ErrorKind, Fence, HoldId, Instant, LockName, Mode, Result};

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
/// lock was still ours. A guard of a [`MultiLock`](crate::MultiLock) has several parts, which are
/// lost together and released in reverse. Beware of `let _ = mutex.lock().await?`, which drops the guard at once.
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
    /// The others of a multi-lock, in order. Declared, and so dropped, before the first.
    rest: Rest,
    first: Part,
}

/// Lets go of the last first.
struct Rest(Vec<Part>);

impl Drop for Rest {
    fn drop(&mut self) {
        while self.0.pop().is_some() {}
    }
}

impl Guard {
    pub(crate) const fn new(part: Part) -> Self {
        Self {
            rest: Rest(Vec::new()),
            first: part,
        }
    }

    /// One guard of several parts, which are lost together; `None` without any.
    pub(crate) fn join(mut parts: Vec<Part>) -> Option<Self> {
        if parts.is_empty() {
            return None;
        }
        let holds: Vec<_> = parts.iter().map(|part| Arc::clone(&part.hold)).collect();
        let first = parts.remove(0);
        Hold::join(&holds);
        Some(Self {
            rest: Rest(parts),
            first,
        })
    }

    fn parts(&self) -> impl DoubleEndedIterator<Item = &Part> {
        std::iter::once(&self.first).chain(&self.rest.0)
    }

    /// The name of the lock; of a multi-lock the first one.
    #[must_use]
    pub fn name(&self) -> &LockName {
        self.first.name()
    }

    /// The id of this hold; of a multi-lock the first one. It is a capability: whoever has it can
    /// release the lock.
    #[must_use]
    pub fn id(&self) -> &HoldId {
        &self.first.hold.id
    }

    /// The fencing token: greater than that of every earlier holder of this name. A reader's
    /// is at least that of the last writer and below that of the next, or 0 if there was none. Of a multi-lock, that of the first name;
    /// [`holds`](Self::holds) has all.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.first.hold.fence()
    }

    /// Every hold and its fencing token: one, or for a multi-lock one for each name, in order.
    pub fn holds(&self) -> impl Iterator<Item = (&HoldId, Fence)> {
        self.parts().map(|part| (&part.hold.id, part.hold.fence()))
    }

    /// How the lock is held.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.first.hold.mode()
    }

    /// Which segment of a segmented lock this is, counted from 0; `None` for any other lock.
    #[must_use]
    pub fn segment(&self) -> Option<u32> {
        self.mode().segment()
    }

    /// Whether the lock is ours at this moment. No I/O: compares the clock with the deadline of
    /// the last confirmed renewal.
    ///
    /// `false` once it is lost, for good; and while it is [doubted](Self::is_doubted), which passes.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.parts().all(|part| part.hold.is_held())
    }

    /// Whether the service may have forgotten this hold and has not been asked yet: it started anew,
    /// or another server took over, as in a failover. The next renewal, which is under way, tells
    /// whether it was lost; a hold that is not renewed stays in doubt.
    #[must_use]
    pub fn is_doubted(&self) -> bool {
        self.parts().any(|part| part.hold.is_doubted())
    }

    /// The moment from which the lock must not be relied on, unless a renewal moves it.
    ///
    /// Of a multi-lock over several lockers, that of the part with the least time left, on
    /// [its clock](Self::clock).
    #[must_use]
    pub fn valid_until(&self) -> Instant {
        self.soonest().hold.valid_until()
    }

    /// The time left until [`valid_until`](Self::valid_until).
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.soonest().hold.remaining()
    }

    /// The clock of [`valid_until`](Self::valid_until).
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.soonest().core.clock
    }

    fn soonest(&self) -> &Part {
        let rest = self.rest.0.iter();
        rest.fold(&self.first, |soonest, part| {
            if part.hold.remaining() < soonest.hold.remaining() {
                part
            } else {
                soonest
            }
        })
    }

    fn loss(&self) -> Option<LossReason> {
        self.parts().find_map(|part| part.hold.loss())
    }

    /// Waits until the lock is lost, and says why. Returns at once if it was lost before.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn lost(&self) -> LossReason {
        loop {
            if let Some(reason) = self.loss() {
                return reason;
            }
            // The watchdog tells, unless the runtime on which it lives has ended or is stuck.
            let look_again = self.remaining().min(Duration::from_secs(1));
            tokio::select! {
                () = self.first.hold.token().cancelled() => {}
                () = tokio::time::sleep(look_again) => {}
            }
        }
    }

    /// A token that is cancelled when the lock is lost. Cancelling it yourself changes nothing
    /// but your copy.
    #[must_use]
    pub fn cancellation_token(&self) -> CancellationToken {
        self.first.hold.token().child_token()
    }

    /// Waits until somebody asks for the lock, with
    /// [`Locker::request_release`](crate::Locker::request_release). Returns at once if that was
    /// before.
    ///
    /// It is a request: whoever does not heed it keeps the lock. On a backend that
    /// [cannot ask](crate::Descriptor::revocation) it never comes.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> lockkit_core::Result<()> {
    /// use lockkit_core::{Locker, Memory};
    ///
    /// let locker = Locker::new(Memory::new())?;
    /// let index = locker.mutex("index");
    /// let guard = index.lock().await?;
    /// let work = tokio::spawn(async move {
    ///     // … one piece of work after the other, until somebody needs the lock …
    ///     guard.revocation_requested().await;
    ///     guard.unlock().await
    /// });
    /// assert_eq!(locker.request_release(&index.resource()?).await?, 1);
    /// assert!(work.await.is_ok());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn revocation_requested(&self) {
        self.first.hold.asked_token().cancelled().await;
    }

    /// Whether somebody has asked for the lock. No I/O.
    #[must_use]
    pub fn is_revocation_requested(&self) -> bool {
        self.first.hold.is_asked_to_release()
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
            Some(done) if self.parts().all(|part| part.hold.loss().is_none()) => Ok(done),
            _ => Err(self.lost_part().lost_error()),
        }
    }

    fn lost_part(&self) -> &Part {
        let mut lost = self.parts().filter(|part| part.hold.loss().is_some());
        lost.next().unwrap_or(&self.first)
    }

    /// Releases the lock and tells whether it was still ours.
    ///
    /// For a reentrant owner only the last guard releases; the others just end. A multi-lock
    /// releases all parts, the last first, whatever becomes of one of them; those after one that was
    /// not confirmed in the background.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unavailable`] if the service did not confirm in time. The release is then
    /// repeated in the background until the lease has run out.
    ///
    /// # Cancel safety
    ///
    /// Once this was called the lock is let go, whether or not the future is awaited to its end.
    pub async fn unlock(self) -> Result<Unlocked> {
        // If this is dropped, the locals are, the last first.
        let Self { first, mut rest } = self;
        if rest.0.is_empty() {
            return first.unlock().await;
        }
        let mut outcome = Unlocked::Clean;
        while let Some(part) = rest.0.pop() {
            // After an error the others are released in the background: each might take as long.
            outcome = worse(outcome, part.unlock().await?);
        }
        Ok(worse(outcome, first.unlock().await?))
    }

    /// Lets the hold outlive this guard and this process: from now on it lives by its own expiry,
    /// `ttl` from now, without a watchdog, and is renewed or released by its id from any process,
    /// through [`Locker::renew`](crate::Locker::renew) and
    /// [`Locker::release`](crate::Locker::release). So a permit of a semaphore becomes one with an
    /// id and an expiry of its own.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] if `ttl` is out of range, the owner holds other guards of
    /// this lock, or it is a multi-lock; [`ErrorKind::Lost`] if the lock was lost before;
    /// [`ErrorKind::Unavailable`] if the service did not confirm. After an error the lock is
    /// released.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future releases the lock.
    pub async fn detach(self, ttl: Duration) -> Result<HoldId> {
        self.single("detached")?.detach(ttl).await
    }

    /// The only part, for what can be done with one hold.
    pub(crate) fn single(self, done: &str) -> Result<Part> {
        let Self { first, rest } = self;
        if rest.0.is_empty() {
            return Ok(first);
        }
        let message = format!("a multi-lock cannot be {done}; take its names one by one");
        Err(first.core.error(ErrorKind::InvalidArgument, message))
    }

    /// The OS file lock that shows this process to be alive, where the backend keeps one.
    ///
    /// A child process that inherits it keeps the lock from being freed when this process dies,
    /// until the child has ended too or the lease runs out.
    #[must_use]
    pub fn session_file(&self) -> Option<File> {
        self.first.core.backend.session_file(&self.first.hold.id)
    }
}

const fn worse(one: Unlocked, other: Unlocked) -> Unlocked {
    match one {
        Unlocked::Clean => other,
        lost @ Unlocked::Lost(_) => lost,
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.rest.0.is_empty() {
            return fmt::Debug::fmt(&self.first.hold, f);
        }
        f.debug_list()
            .entries(self.parts().map(|part| &part.hold))
            .finish()
    }
}
