//! lockkit itself, through its facade.

use anyhow::{Result, ensure};
use lockkit::{Guard, Locker, LockerOptions, Mutex, Unlocked};

use super::{Peer, Task, held};
use crate::options::{Options, Workload};

/// The default lock, or the fair one in the workload `fair`. A server is a host and port, several
/// are independent nodes of a quorum, and a URL is taken as it is.
pub(crate) struct Lockkit {
    locker: Locker,
    fair: bool,
}

pub(crate) struct LockkitTask {
    mutex: Mutex,
    guard: Option<Guard>,
}

impl Peer for Lockkit {
    type Task = LockkitTask;
    async fn connect(options: &Options) -> Result<Self> {
        let mut locker = LockerOptions::default();
        locker.ttl = options.ttl;
        let server = &options.server;
        let url = match () {
            () if server.contains(':') && server.contains("//") => server.clone(),
            () if server.contains(',') => format!("redlock://{server}"),
            () => format!("redis://{server}"),
        };
        Ok(Self {
            locker: lockkit::connect_with(&url, locker).await?,
            fair: options.workload == Workload::Fair,
        })
    }
    async fn task(&self, key: &str) -> Result<LockkitTask> {
        let mutex = self.locker.mutex(key);
        let mutex = if self.fair { mutex.fair() } else { mutex };
        Ok(LockkitTask { mutex, guard: None })
    }
}

impl Task for LockkitTask {
    async fn lock(&mut self) -> Result<()> {
        self.guard = Some(self.mutex.lock().await?);
        Ok(())
    }
    async fn unlock(&mut self) -> Result<()> {
        let unlocked = held(&mut self.guard)?.unlock().await?;
        ensure!(unlocked == Unlocked::Clean, "the lock was lost");
        Ok(())
    }
    async fn try_lock(&mut self) -> Result<bool> {
        self.guard = self.mutex.try_lock().await?;
        Ok(self.guard.is_some())
    }
    fn fence(&self) -> Option<u64> {
        self.guard.as_ref().map(|guard| guard.fence().get())
    }
}
