//! One holder at a time.

use std::sync::Arc;
use std::time::Duration;

#[cfg(doc)]
use crate::ErrorKind;
use crate::core::Core;
use crate::terms::{Terms, choices, debug_terms};
use crate::{Guard, Mode, Order, Owner, Primitive, Result};

/// A lock that one holder has at a time, to be configured and taken.
///
/// Made by [`Locker::mutex`](crate::Locker::mutex). It holds nothing itself: clone it, keep it,
/// share it. Not reentrant unless an [`owner`](Self::owner) is given: taking it twice waits for
/// oneself.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> lockkit_core::Result<()> {
/// use std::time::Duration;
/// use lockkit_core::{ErrorKind, Locker, Memory};
///
/// let locker = Locker::new(Memory::new())?;
/// let report = locker
///     .mutex("nightly-report")
///     .ttl(Duration::from_secs(10))
///     .wait(Duration::from_millis(20))
///     .fair()
///     .label("report of the day");
/// let guard = report.lock().await?;
/// assert_eq!(report.lock().await.unwrap_err().kind(), ErrorKind::Timeout);
/// # drop(guard);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a mutex does nothing until it is locked"]
pub struct Mutex {
    pub(crate) terms: Terms,
}

debug_terms!(Mutex);

impl Mutex {
    pub(crate) fn new(core: &Arc<Core>, name: impl AsRef<str>) -> Self {
        Self {
            terms: Terms::new(core, Primitive::Mutex, name, Order::Barging),
        }
    }

    choices!(lease);
    choices!(resource);
    choices!(wait);
    choices!(owner);

    /// First come, first served, instead of letting newcomers pass those who still have to wake
    /// up. Slower under contention, and nobody is ever passed over.
    ///
    /// A backend that keeps [no order](crate::Descriptor::fair) refuses it when the lock is taken,
    /// with [`Unsupported`](crate::ErrorKind::Unsupported).
    pub const fn fair(mut self) -> Self {
        self.terms.order = Order::Fair;
        self
    }

    /// Waits until the lock is ours.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Timeout`] if [`wait`](Self::wait) ran out; [`ErrorKind::InvalidName`],
    /// [`ErrorKind::InvalidArgument`] or [`ErrorKind::Unsupported`] before any I/O;
    /// [`ErrorKind::Lost`] if the owner's hold was lost; [`ErrorKind::Unavailable`] if the backend
    /// has not answered for a lease; [`ErrorKind::Closed`] once the locker is.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future at any point loses the place in line and leaves nothing behind.
    pub async fn lock(&self) -> Result<Guard> {
        self.terms.lock(Mode::Exclusive).await
    }

    /// Takes the lock if it is free; `None` if somebody else holds it.
    ///
    /// # Errors
    ///
    /// As [`lock`](Self::lock), except that it never waits and so never times out;
    /// [`ErrorKind::Unavailable`] if the backend does not answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future at any point leaves nothing behind.
    pub async fn try_lock(&self) -> Result<Option<Guard>> {
        self.terms.try_lock(Mode::Exclusive).await
    }
}
