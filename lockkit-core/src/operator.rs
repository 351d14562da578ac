//! What an operator does: look, take away, ask.

#[cfg(doc)]
use crate::ErrorKind;
use crate::{HoldId, Locker, Released, Resource, Result, Snapshot};

impl Locker {
    /// Who holds and who waits for one resource, in the service's own order.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] if the backend has no such primitive;
    /// [`ErrorKind::Unavailable`] if it does not answer.
    ///
    /// # Cancel safety
    ///
    /// Reads only.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> lockkit_core::Result<()> {
    /// use lockkit_core::{Locker, Memory};
    ///
    /// let locker = Locker::new(Memory::new())?;
    /// let report = locker.mutex("report").label("nightly");
    /// let guard = report.lock().await?;
    /// let snapshot = locker.inspect(&report.resource()?).await?;
    /// let holder = &snapshot.holders[0];
    /// println!("{} for {:?}, {:?} left", holder.label, holder.held_for, holder.remaining);
    /// assert_eq!(holder.fence, guard.fence());
    /// assert!(snapshot.waiters.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn inspect(&self, resource: &Resource) -> Result<Snapshot> {
        self.core.check_not_closed()?;
        self.require(resource.primitive())?;
        self.core.bounded(self.core.backend.inspect(resource)).await
    }

    /// Who holds and who waits, for each name that begins with `prefix`; the empty prefix is all.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unavailable`] if the backend does not answer.
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
    /// that away; whoever still waits then goes to the end of the line. An
    /// [audit event](crate::observability) records who did it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] if the backend has no such primitive;
    /// [`ErrorKind::Unavailable`] if it did not confirm.
    ///
    /// # Cancel safety
    ///
    /// The eviction may or may not have taken effect.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> lockkit_core::Result<()> {
    /// use lockkit_core::{Locker, LossReason, Memory};
    ///
    /// let locker = Locker::new(Memory::new())?;
    /// let (stuck, healthy) = (locker.semaphore("exports", 2), locker.semaphore("exports", 2));
    /// let (stuck, healthy) = (stuck.acquire().await?, healthy.acquire().await?);
    /// locker.evict(stuck.id()).await?;
    /// assert_eq!(stuck.lost().await, LossReason::Gone);
    /// assert!(healthy.is_held());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn evict(&self, id: &HoldId) -> Result<Released> {
        self.core.check_not_closed()?;
        self.require(id.resource().primitive())?;
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
    /// [`ErrorKind::Unsupported`] if the backend has no such primitive, or
    /// [cannot ask](crate::Descriptor::revocation); [`ErrorKind::Unavailable`] if it did not
    /// confirm, and some may have been asked.
    ///
    /// # Cancel safety
    ///
    /// They may or may not have been asked.
    pub async fn request_release(&self, resource: &Resource) -> Result<usize> {
        self.core.check_not_closed()?;
        self.require(resource.primitive())?;
        self.descriptor().require_revocation()?;
        let asked = self.core.backend.request_release(resource);
        let asked = self.core.bounded(asked).await?;
        self.core.observer.asked(resource, &self.core.label, asked);
        Ok(asked)
    }

    /// Asks the service whether it is well: facts as name and value, for people. What follows the
    /// fact `server` is about the server of that address.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unavailable`] if it is not.
    ///
    /// # Cancel safety
    ///
    /// Reads only.
    pub async fn probe(&self) -> Result<Vec<(&'static str, String)>> {
        self.core.check_not_closed()?;
        self.core.bounded(self.core.backend.probe()).await
    }
}
