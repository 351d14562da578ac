//! The lock contract of lockkit: its vocabulary, all of its policy, the SPI for backends, and the
//! in-memory reference backend. No network dependency.
//!
//! Applications use the `lockkit` crate, which re-exports this one and opens backends by URL.
//! Authors of backends start at [`backend`].
//!
//! | to find | look at |
//! | --- | --- |
//! | the handle and the guard | [`Locker`], [`Guard`], [`DistributedLock`] |
//! | what can be locked | [`Mutex`], [`ReadWriteLock`], [`Semaphore`], [`SegmentedLock`], [`MultiLock`], [`Latch`] |
//! | how long a hold may be believed | [`valid_until`], [`Clock`], [`Guarantee`] |
//! | what a backend must do | [`Backend`], [`Ticket`], [`Claim`], [`Notices`] |
//! | who may enter next | [`admission`] |
//! | metrics and traces | [`observability`] |
//! | locks for tests and examples | [`Memory`], [`MemoryStore`] |

mod acquire;
pub mod admission;
pub mod backend;
mod claim;
mod clock;
mod conversion;
mod core;
mod descriptor;
mod detached;
mod end;
mod error;
mod fence;
mod group;
mod guard;
mod hold;
mod id;
mod label;
mod latch;
mod lock;
mod locker;
mod memory;
mod mode;
mod multi_lock;
mod mutex;
mod name;
mod notices;
#[doc = include_str!("docs/observability.md")]
pub mod observability {}
mod observe;
mod operator;
mod options;
mod owner;
mod part;
mod place;
mod read_write;
mod releasing;
mod resource;
mod segmented;
mod semaphore;
mod snapshot;
mod standing;
mod terms;
mod time_limit;
mod together;
mod undo;
mod validity;
mod watchdog;
mod within;

pub use backend::{Backend, Ticket};
pub use claim::{Attempt, Claim, Converted, CountDown, Grant, Released, Renewal, Together};
pub use clock::{Clock, Instant};
pub use conversion::Upgraded;
pub use descriptor::{Descriptor, FenceClass, Guarantee};
pub use error::{Error, ErrorKind, Result};
pub use fence::Fence;
pub use guard::{Guard, Unlocked};
pub use hold::LossReason;
pub use id::{AttemptId, HoldId};
pub use label::Label;
pub use latch::Latch;
pub use lock::DistributedLock;
pub use locker::Locker;
pub use memory::{Memory, MemoryStore};
pub use mode::{Mode, Order, Pick};
pub use multi_lock::MultiLock;
pub use mutex::Mutex;
pub use name::{LockName, NameError};
pub use notices::Notices;
pub use options::LockerOptions;
pub use owner::Owner;
pub use read_write::{ReadLock, ReadWriteLock, WriteLock};
pub use resource::{Primitive, Resource};
pub use segmented::SegmentedLock;
pub use semaphore::Semaphore;
pub use snapshot::{Holder, LatchState, Snapshot, Waiter};
pub use time_limit::TimeLimit;
pub use validity::valid_until;
