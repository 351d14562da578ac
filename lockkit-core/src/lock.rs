//! The trait that every lock implements.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;

use crate::{
    Guard, MultiLock, Mutex, ReadLock, Result, SegmentedLock, Semaphore, Unlocked, WriteLock,
};

/// A lock, whatever its kind, for code that takes `&dyn DistributedLock`: a mutex, either half of a
/// read-write lock, permits of a semaphore, any segment of a segmented lock, several names at once.
///
/// # Examples
///
/// ```
/// use lockkit_core::{DistributedLock, Locker, Memory, Result};
///
/// async fn ship(order: &dyn DistributedLock) -> Result<()> {
///     let guard = order.lock().await?;
///     // … write, passing guard.fence() along …
///     let _ = order.unlock(guard).await?;
///     Ok(())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let locker = Locker::new(Memory::new())?;
/// ship(&locker.mutex("orders/42")).await
/// # }
/// ```
#[async_trait]
pub trait DistributedLock: Debug + Send + Sync {
    /// Waits for the lock and holds it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) if this lock's time to wait ran out;
    /// other kinds as [`Mutex::lock`] describes.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses the place in line and leaves nothing behind.
    async fn lock(&self) -> Result<Guard>;

    /// Holds the lock if it is free: `None` if somebody else holds it.
    ///
    /// # Errors
    ///
    /// As [`Mutex::try_lock`] describes.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind.
    async fn try_lock(&self) -> Result<Option<Guard>>;

    /// Releases a guard, the same as [`Guard::unlock`].
    ///
    /// # Errors
    ///
    /// As [`Guard::unlock`] describes.
    ///
    /// # Cancel safety
    ///
    /// Once this was called the lock is let go.
    async fn unlock(&self, guard: Guard) -> Result<Unlocked>;
}

macro_rules! implement {
    ($($lock:ident: $take:ident, $try:ident;)*) => {$(
        #[async_trait]
        impl DistributedLock for $lock {
            async fn lock(&self) -> Result<Guard> {
                self.$take().await
            }

            async fn try_lock(&self) -> Result<Option<Guard>> {
                self.$try().await
            }

            async fn unlock(&self, guard: Guard) -> Result<Unlocked> {
                guard.unlock().await
            }
        }
    )*};
}

implement! {
    Mutex: lock, try_lock;
    ReadLock: lock, try_lock;
    WriteLock: lock, try_lock;
    Semaphore: acquire, try_acquire;
    SegmentedLock: lock_any, try_lock_any;
    MultiLock: lock, try_lock;
}

macro_rules! forward {
    ($($pointer:ident),*) => {$(
        #[async_trait]
        impl<T: DistributedLock + ?Sized> DistributedLock for $pointer<T> {
            async fn lock(&self) -> Result<Guard> {
                (**self).lock().await
            }

            async fn try_lock(&self) -> Result<Option<Guard>> {
                (**self).try_lock().await
            }

            async fn unlock(&self, guard: Guard) -> Result<Unlocked> {
                (**self).unlock(guard).await
            }
        }
    )*};
}

forward!(Arc, Box);
