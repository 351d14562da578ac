//! Locks in Redis.

#[cfg(feature = "distributed-lock")]
mod distributed_lock;
mod floor;
mod rlock;
mod rslock;

#[cfg(feature = "distributed-lock")]
pub(crate) use distributed_lock::DistributedLock;
pub(crate) use floor::Floor;
pub(crate) use rlock::Rlock;
pub(crate) use rslock::Rslock;

/// The URL of one server.
fn url(server: &str) -> String {
    format!("redis://{server}/")
}
