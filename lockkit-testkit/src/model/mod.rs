//! A storm of random operations, judged against a sequential model.
//!
//! For each primitive, tasks or child processes do random operations on a few names, drop futures
//! half-way, let leases run out, lose requests and replies, are stopped, and are killed. Each writes
//! down what it was given and for how long it believed in it. When the storm is over, the record is
//! held against what the primitive means (`judge`): whatever real concurrency made of it, there
//! has to be an order of single steps that explains it. Then every name has to be free, and nothing
//! may be left on the service.
//!
//! The seed is printed. `LOCKKIT_MODEL_SEED` sets it, `LOCKKIT_MODEL_SECONDS` says how long a storm
//! lasts (30, or less for some). A seed repeats the choices that are made, not the order in which threads and
//! processes run.

mod actor;
mod child;
mod judge;
mod latches;
mod plan;
mod pool;
mod record;
mod roles;
mod storm;
mod suite;

pub use suite::{Crowd, main, main_for};
