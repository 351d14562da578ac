//! The quorum lock of the crate of that name; with one server a plain lock.

use std::time::Duration;

use anyhow::{Context, Result};

use super::url;
use crate::options::Options;
use crate::peers::{Peer, Task, held};

/// rslock: SET NX PX, random 0-200 ms between attempts, no renewal.
pub(crate) struct Rslock {
    manager: rslock::LockManager,
    ttl: Duration,
}

pub(crate) struct RslockTask {
    manager: rslock::LockManager,
    once: rslock::LockManager,
    key: Vec<u8>,
    ttl: Duration,
    guard: Option<rslock::LockGuard>,
}

impl Peer for Rslock {
    type Task = RslockTask;
    async fn connect(options: &Options) -> Result<Self> {
        Ok(Self {
            manager: rslock::LockManager::new(options.server.split(',').map(url).collect()),
            ttl: options.ttl,
        })
    }
    async fn task(&self, key: &str) -> Result<RslockTask> {
        let mut once = self.manager.clone();
        once.set_retry(1, Duration::from_millis(200));
        Ok(RslockTask {
            manager: self.manager.clone(),
            once,
            key: key.into(),
            ttl: self.ttl,
            guard: None,
        })
    }
}

impl Task for RslockTask {
    async fn lock(&mut self) -> Result<()> {
        self.guard = Some(self.manager.acquire(self.key.as_slice(), self.ttl).await?);
        Ok(())
    }
    async fn unlock(&mut self) -> Result<()> {
        held(&mut self.guard)?.release().await;
        Ok(())
    }
    async fn try_lock(&mut self) -> Result<bool> {
        match self.once.lock(self.key.as_slice(), self.ttl).await {
            Ok(_) => Ok(true),
            Err(rslock::LockError::Unavailable) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
    async fn extend(&mut self) -> Result<()> {
        let guard = self.guard.as_mut().context("not held")?;
        guard.lock = self.manager.extend(&guard.lock, self.ttl).await?;
        Ok(())
    }
}
