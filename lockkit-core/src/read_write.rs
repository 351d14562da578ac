//! Many readers or one writer.

use std::sync::Arc;
use std::time::Duration;

#[cfg(doc)]
use crate::ErrorKind;
use crate::core::Core;
use crate::terms::{Terms, choices, debug_terms};
use crate::{Guard, Mode, Order, Owner, Primitive, Result};

/// A lock that many readers or one writer have at a time, to be configured and taken by one of its
/// halves.
///
/// Made by [`Locker::read_write`](crate::Locker::read_write). Strictly first come, first served, so
/// neither side starves the other: a writer in line stops the readers that come after it, and when
/// a writer is done, all readers up to the next writer in line enter together.
///
/// A write grant has a fence as every exclusive grant; a read grant has the fence of the last
/// write, so a reader can tell what it has seen. A writer becomes a reader by
/// [`Guard::downgrade`], and a reader that is alone a writer by [`Guard::try_upgrade`].
///
/// With an [`owner`](Self::owner) both halves are reentrant, and a writer may read; its hold stays
/// a writer's until the last of its guards is gone. A reader that asks to write is refused, because
/// it would wait for itself.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> lockkit_core::Result<()> {
/// use lockkit_core::{Locker, Memory, Upgraded};
///
/// let locker = Locker::new(Memory::new())?;
/// let prices = locker.read_write("prices");
/// let one = prices.read().lock().await?;
/// let other = prices.read().lock().await?;
/// assert!(prices.write().try_lock().await?.is_none());
/// let _ = other.unlock().await?;
///
/// let Upgraded::Writer(writer) = one.try_upgrade().await? else {
///     unreachable!("nobody else reads or waits")
/// };
/// // … write, with writer.fence() …
/// let reader = writer.downgrade().await?;
/// assert_eq!(prices.read().lock().await?.fence(), reader.fence());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a lock does nothing until it is taken"]
pub struct ReadWriteLock {
    terms: Terms,
}

/// The half of a [`ReadWriteLock`] that many have at a time.
#[derive(Clone)]
#[must_use = "a lock does nothing until it is taken"]
pub struct ReadLock {
    terms: Terms,
}

/// The half of a [`ReadWriteLock`] that excludes everybody else.
#[derive(Clone)]
#[must_use = "a lock does nothing until it is taken"]
pub struct WriteLock {
    terms: Terms,
}

debug_terms!(ReadWriteLock);
debug_terms!(ReadLock);
debug_terms!(WriteLock);

impl ReadWriteLock {
    pub(crate) fn new(core: &Arc<Core>, name: impl AsRef<str>) -> Self {
        Self {
            terms: Terms::new(core, Primitive::ReadWrite, name, Order::Fair),
        }
    }

    choices!(lease);
    choices!(resource);
    choices!(wait);
    choices!(owner);

    /// To read: together with other readers.
    pub fn read(&self) -> ReadLock {
        ReadLock {
            terms: self.terms.clone(),
        }
    }

    /// To write: alone.
    pub fn write(&self) -> WriteLock {
        WriteLock {
            terms: self.terms.clone(),
        }
    }
}

/// Both halves are taken in the same way.
macro_rules! half {
    ($half:ident, $mode:expr) => {
        impl $half {
            choices!(wait);

            /// Waits until this half of the lock is ours.
            ///
            /// # Errors
            ///
            /// [`ErrorKind::Timeout`] if [`wait`](Self::wait) ran out; [`ErrorKind::InvalidName`],
            /// [`ErrorKind::InvalidArgument`] or [`ErrorKind::Unsupported`] before any I/O;
            /// [`ErrorKind::InvalidArgument`] too if the owner reads and asks to write;
            /// [`ErrorKind::Lost`] if the owner's hold was lost; [`ErrorKind::Unavailable`] if the
            /// backend has not answered for a lease; [`ErrorKind::Closed`] once the locker is.
            ///
            /// # Cancel safety
            ///
            /// Dropping the future at any point loses the place in line and leaves nothing behind.
            pub async fn lock(&self) -> Result<Guard> {
                self.terms.lock($mode).await
            }

            /// Takes this half if that is possible now; `None` if somebody is in the way, be it
            /// by waiting for it.
            ///
            /// # Errors
            ///
            /// As [`lock`](Self::lock), except that it never waits and so never times out.
            ///
            /// # Cancel safety
            ///
            /// Dropping the future at any point leaves nothing behind.
            pub async fn try_lock(&self) -> Result<Option<Guard>> {
                self.terms.try_lock($mode).await
            }
        }
    };
}

half!(ReadLock, Mode::Shared);
half!(WriteLock, Mode::Exclusive);
