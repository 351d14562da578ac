//! n permits.

use std::sync::Arc;
use std::time::Duration;

use crate::core::Core;
use crate::terms::{Terms, choices, debug_terms};
use crate::{Error, ErrorKind, Guard, Mode, Order, Primitive, Result};

/// A number of permits that are taken and given back, to be configured and used.
///
/// Made by [`Locker::semaphore`](crate::Locker::semaphore). First come, first served, also for
/// those who want several permits at once: nobody who wants fewer passes them. The permits of a
/// holder that dies come back with its lease.
///
/// The limit is stored with the name when the first permit is taken. Another limit is then an
/// error, [`ErrorKind::ConfigMismatch`], because two programs that disagree about it would let too
/// many in; [`set_limit`](Self::set_limit) changes it on purpose.
///
/// A guard [`detach`](Guard::detach)es into a permit with an id and an expiry of its own, which any
/// process can renew or release.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> lockkit_core::Result<()> {
/// use lockkit_core::{ErrorKind, Locker, Memory};
///
/// let locker = Locker::new(Memory::new())?;
/// let exports = locker.semaphore("exports", 5);
/// let small = exports.acquire().await?;
/// let big = exports.acquire_many(3).await?;
/// assert!(exports.try_acquire_many(2).await?.is_none());
/// assert_eq!(exports.available().await?, 1);
///
/// let error = locker.semaphore("exports", 6).acquire().await.unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::ConfigMismatch);
/// let exports = exports.set_limit(6).await?;
/// assert!(exports.try_acquire_many(2).await?.is_some());
/// # drop((small, big));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a semaphore does nothing until a permit is taken"]
pub struct Semaphore {
    terms: Terms,
    limit: u32,
    count: u32,
}

debug_terms!(Semaphore);

impl Semaphore {
    pub(crate) fn new(core: &Arc<Core>, name: impl AsRef<str>, limit: u32) -> Self {
        Self {
            terms: Terms::new(core, Primitive::Semaphore, name, Order::Fair),
            limit,
            count: 1,
        }
    }

    choices!(lease);
    choices!(resource);
    choices!(wait);

    /// How many permits [`acquire`](Self::acquire) takes at once, and
    /// [`DistributedLock::lock`](crate::DistributedLock::lock) too; 1.
    pub const fn permits(mut self, count: u32) -> Self {
        self.count = count;
        self
    }

    /// How many permits there are in all.
    #[must_use]
    pub const fn limit(&self) -> u32 {
        self.limit
    }

    /// Waits until a permit is ours, or as many as [`permits`](Self::permits) says.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Timeout`] if [`wait`](Self::wait) ran out; [`ErrorKind::InvalidName`],
    /// [`ErrorKind::InvalidArgument`] or [`ErrorKind::Unsupported`] before any I/O;
    /// [`ErrorKind::ConfigMismatch`] if the name has another limit, or was given a lower one than
    /// this asks for; [`ErrorKind::Unavailable`] if the backend has not answered for a lease;
    /// [`ErrorKind::Closed`] once the locker is.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future at any point loses the place in line and leaves nothing behind.
    pub async fn acquire(&self) -> Result<Guard> {
        self.acquire_many(self.count).await
    }

    /// Takes a permit if one is free and nobody waits; `None` otherwise.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), except that it never waits and so never times out.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future at any point leaves nothing behind.
    pub async fn try_acquire(&self) -> Result<Option<Guard>> {
        self.try_acquire_many(self.count).await
    }

    /// Waits until `count` permits are ours, all under one guard.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire); [`ErrorKind::InvalidArgument`] if `count` is 0 or more than
    /// there are.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future at any point loses the place in line and leaves nothing behind.
    pub async fn acquire_many(&self, count: u32) -> Result<Guard> {
        self.terms.lock(self.mode(count)?).await
    }

    /// Takes `count` permits if they are free and nobody waits; `None` otherwise.
    ///
    /// # Errors
    ///
    /// As [`acquire_many`](Self::acquire_many), except that it never times out.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future at any point leaves nothing behind.
    pub async fn try_acquire_many(&self, count: u32) -> Result<Option<Guard>> {
        self.terms.try_lock(self.mode(count)?).await
    }

    /// How many permits are free at this moment, by the limit stored with the name.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unavailable`] if the backend does not answer.
    ///
    /// # Cancel safety
    ///
    /// Reads only.
    pub async fn available(&self) -> Result<u32> {
        let resource = self.terms.resource()?;
        let core = &self.terms.core;
        core.check_not_closed()?;
        let snapshot = core.bounded(core.backend.inspect(&resource)).await?;
        let taken = snapshot.holders.iter().map(|holder| match holder.mode {
            Mode::Permits { count, .. } => count,
            _ => 0,
        });
        let limit = snapshot.size.unwrap_or(self.limit);
        Ok(taken.fold(limit, u32::saturating_sub))
    }

    /// Changes the limit that is stored with the name, and gives back the semaphore with it.
    ///
    /// Takes nothing from anybody: if more permits are out than there are now, nobody enters until
    /// enough came back. Who waits for more permits than there are now fails with
    /// [`ErrorKind::ConfigMismatch`], as does every later call with the old limit.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] if `limit` is 0; [`ErrorKind::Unavailable`] if the backend
    /// did not confirm, in which case it may have been changed.
    ///
    /// # Cancel safety
    ///
    /// The limit may or may not have been changed.
    pub async fn set_limit(&self, limit: u32) -> Result<Self> {
        let resource = self.terms.resource()?;
        let core = &self.terms.core;
        core.check_not_closed()?;
        if limit == 0 {
            return Err(self.zero());
        }
        core.bounded(core.backend.set_size(&resource, limit))
            .await?;
        Ok(Self {
            limit,
            ..self.clone()
        })
    }

    fn mode(&self, count: u32) -> Result<Mode> {
        if self.limit == 0 {
            return Err(self.zero());
        }
        if count == 0 || count > self.limit {
            let message = format!(
                "{count} of {} permits cannot be taken; ask for 1 to {}",
                self.limit, self.limit
            );
            return Err(self.terms.core.error(ErrorKind::InvalidArgument, message));
        }
        Ok(Mode::Permits {
            count,
            limit: self.limit,
        })
    }

    fn zero(&self) -> Error {
        let message = "a semaphore with 0 permits lets nobody in; use 1 or more";
        self.terms.core.error(ErrorKind::InvalidArgument, message)
    }
}
