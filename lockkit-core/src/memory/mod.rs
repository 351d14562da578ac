//! Locks in this process: the reference for the semantics of every other backend.
//!
//! Guarantee: [`Linearizable`](crate::Guarantee::Linearizable) for as long as the
//! [`MemoryStore`] lives; nothing survives the process. Leases are counted on tokio's clock, so
//! tests may pause and advance it. Use it in unit tests and examples; between the tasks of one
//! process, `tokio::sync::Mutex` is the better lock.

mod backend;
mod entry;
mod held;
mod latch;
mod store;
mod ticket;

pub use backend::Memory;
pub use store::MemoryStore;
