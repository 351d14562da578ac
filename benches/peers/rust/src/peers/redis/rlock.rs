//! The crate of that name.

use ::rlock::AcquireOptions;
use ::rlock::async_lock::{RLock, RLockGuard};
use anyhow::Result;

use super::url;
use crate::options::Options;
use crate::peers::{Peer, Task, held};

/// rlock: one script per call, fixed 100 ms between attempts, renewed by a task per lock.
pub(crate) struct Rlock {
    client: RLock,
    options: AcquireOptions,
}

pub(crate) struct RlockTask {
    client: RLock,
    options: AcquireOptions,
    key: String,
    guard: Option<RLockGuard>,
}

impl Peer for Rlock {
    type Task = RlockTask;
    async fn connect(options: &Options) -> Result<Self> {
        let acquire = AcquireOptions::builder().ttl(options.ttl).build()?;
        Ok(Self {
            client: RLock::new(url(&options.server)).await?,
            options: acquire,
        })
    }
    async fn task(&self, key: &str) -> Result<RlockTask> {
        Ok(RlockTask {
            client: self.client.clone(),
            options: self.options.clone(),
            key: key.into(),
            guard: None,
        })
    }
}

impl Task for RlockTask {
    async fn lock(&mut self) -> Result<()> {
        self.guard = Some(
            self.client
                .acquire_mutex_with_options(&self.key, self.options.clone())
                .await?,
        );
        Ok(())
    }
    async fn unlock(&mut self) -> Result<()> {
        Ok(held(&mut self.guard)?.release().await?)
    }
    async fn try_lock(&mut self) -> Result<bool> {
        Ok(self
            .client
            .try_acquire_mutex_with_options(&self.key, self.options.clone())
            .await?
            .is_some())
    }
}
