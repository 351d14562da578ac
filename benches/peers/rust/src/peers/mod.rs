//! One adapter per library, each no more than the calls its own documentation shows.

#[cfg(feature = "etcd")]
mod etcd;
mod lockkit;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "zookeeper")]
mod zookeeper;

use anyhow::{Context, Result, bail};

use crate::options::Options;
use crate::run;

/// One independent client: its own connections or session, as a separate process would have.
pub(crate) trait Peer: Sized + Send + Sync + 'static {
    type Task: Task;
    fn connect(options: &Options) -> impl Future<Output = Result<Self>> + Send;
    fn task(&self, key: &str) -> impl Future<Output = Result<Self::Task>> + Send;
}

/// One concurrent lock user on a client.
pub(crate) trait Task: Send + 'static {
    fn lock(&mut self) -> impl Future<Output = Result<()>> + Send;
    fn unlock(&mut self) -> impl Future<Output = Result<()>> + Send;

    /// `Ok(false)` when somebody else holds the lock.
    fn try_lock(&mut self) -> impl Future<Output = Result<bool>> + Send {
        async { bail!("the library has no non-waiting lock call") }
    }

    /// The fence of the lock that is held, where the library gives one.
    fn fence(&self) -> Option<u64> {
        None
    }

    /// Renews the lease, for libraries that leave that to the user.
    fn extend(&mut self) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }
}

/// Runs the peer of that name.
pub(crate) async fn run_named(options: Options) -> Result<()> {
    match options.peer.as_str() {
        "lockkit" => run::<lockkit::Lockkit>("lockkit", options).await,
        #[cfg(feature = "redis")]
        "redis-floor" => run::<redis::Floor>("redis", options).await,
        #[cfg(feature = "redis")]
        "rlock" => run::<redis::Rlock>("rlock", options).await,
        #[cfg(feature = "redis")]
        "rslock" => run::<redis::Rslock>("rslock", options).await,
        #[cfg(feature = "distributed-lock")]
        "distributed-lock" => {
            run::<redis::DistributedLock>("distributed-lock-redis", options).await
        }
        #[cfg(feature = "zookeeper")]
        "zk-client-lock" => run::<zookeeper::Recipe>("zookeeper-client", options).await,
        #[cfg(feature = "zookeeper")]
        "zk-floor" => run::<zookeeper::Floor>("zookeeper-client", options).await,
        #[cfg(feature = "etcd")]
        "etcd-client-lock" => run::<etcd::LockRpc>("etcd-client", options).await,
        #[cfg(feature = "etcd")]
        "etcd-floor" => run::<etcd::Floor>("etcd-client", options).await,
        #[cfg(feature = "postgres")]
        "pg-advisory" => run::<postgres::Advisory>("sqlx", options).await,
        #[cfg(feature = "postgres")]
        "pg-forupdate" => run::<postgres::ForUpdate>("sqlx", options).await,
        #[cfg(feature = "postgres")]
        "pg-floor" => run::<postgres::Floor>("sqlx", options).await,
        other => bail!("there is no peer {other:?} in this build"),
    }
}

/// Takes what a task holds.
fn held<T>(guard: &mut Option<T>) -> Result<T> {
    guard.take().context("not held")
}
