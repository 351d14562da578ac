//! The crate of that name.

use anyhow::Result;
use distributed_lock_core::error::LockError;
use distributed_lock_core::prelude::{DistributedLock as _, LockHandle as _, LockProvider as _};
use distributed_lock_redis::{RedisDistributedLock, RedisLockHandle, RedisLockProvider};

use super::url;
use crate::options::Options;
use crate::peers::{Peer, Task, held};

/// distributed-lock: its Redis `acquire` returns `Timeout` at once when the lock is held, whatever timeout it was given,
/// so a caller who wants the lock can only call again. `min_validity` must be lowered together with `expiry`: left at its
/// default of 27 s it makes the budget of every acquire zero, and the key is set while the caller is told "held".
pub(crate) struct DistributedLock(RedisLockProvider);

pub(crate) struct DistributedLockTask {
    lock: RedisDistributedLock,
    handle: Option<RedisLockHandle>,
}

impl Peer for DistributedLock {
    type Task = DistributedLockTask;
    async fn connect(options: &Options) -> Result<Self> {
        let builder = RedisLockProvider::builder().url(url(&options.server));
        let builder = builder
            .expiry(options.ttl)
            .min_validity(options.ttl * 9 / 10)
            .extension_cadence(options.ttl / 3);
        Ok(Self(builder.build().await?))
    }
    async fn task(&self, key: &str) -> Result<DistributedLockTask> {
        Ok(DistributedLockTask {
            lock: self.0.create_lock(key),
            handle: None,
        })
    }
}

impl Task for DistributedLockTask {
    async fn lock(&mut self) -> Result<()> {
        loop {
            match self.lock.acquire(None).await {
                Ok(handle) => break self.handle = Some(handle),
                Err(LockError::Timeout(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
    async fn unlock(&mut self) -> Result<()> {
        Ok(held(&mut self.handle)?.release().await?)
    }
    async fn try_lock(&mut self) -> Result<bool> {
        self.handle = self.lock.try_acquire().await?;
        Ok(self.handle.is_some())
    }
}
