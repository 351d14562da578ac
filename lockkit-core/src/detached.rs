//! Holds by their id, from any process.

use std::time::Duration;

#[cfg(doc)]
use crate::ErrorKind;
use crate::hold::LossReason;
use crate::part::lost;
use crate::releasing::Releasing;
use crate::{HoldId, Locker, Released, Renewal, Result};

impl Locker {
    /// Renews a [detached](crate::Guard::detach) hold: it now runs out `ttl` from now. From any
    /// process.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Lost`] if the hold had run out, or was released or broken;
    /// [`ErrorKind::InvalidArgument`] if `ttl` is out of range; [`ErrorKind::Unsupported`] if the
    /// backend has no such primitive; [`ErrorKind::Unavailable`] if it did not confirm, in which
    /// case the old expiry may still hold.
    ///
    /// # Cancel safety
    ///
    /// The renewal may or may not have taken effect.
    ///
    /// # Examples
    ///
    /// A permit with an id and an expiry of its own, handed to another process:
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> lockkit_core::Result<()> {
    /// use std::time::Duration;
    /// use lockkit_core::{HoldId, Locker, Memory, Released};
    ///
    /// let locker = Locker::new(Memory::new())?;
    /// let permit = locker.semaphore("exports", 5).acquire().await?;
    /// let text = permit.detach(Duration::from_secs(60)).await?.to_string();
    ///
    /// // … there …
    /// let id: HoldId = text.parse()?;
    /// locker.renew(&id, Duration::from_secs(60)).await?;
    /// assert_eq!(locker.release(&id).await?, Released::Done);
    /// assert_eq!(locker.release(&id).await?, Released::NotHeld);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn renew(&self, id: &HoldId, ttl: Duration) -> Result<()> {
        self.core.check_not_closed()?;
        self.require(id.resource().primitive())?;
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
    /// [`ErrorKind::Unsupported`] if the backend has no such primitive;
    /// [`ErrorKind::Unavailable`] if it did not confirm, which is then repeated in the background.
    ///
    /// # Cancel safety
    ///
    /// Once this was polled the hold is let go.
    pub async fn release(&self, id: &HoldId) -> Result<Released> {
        self.core.check_not_closed()?;
        self.require(id.resource().primitive())?;
        // A guard of it in this process must not believe in it any more.
        if !self.core.watchdog.let_go(id) {
            return Ok(Released::Done); // A claim of ours, about to withdraw.
        }
        let ttl = self.core.options.call_timeout;
        self.core
            .bounded(Releasing::new(&self.core, id.clone(), ttl))
            .await
    }
}
