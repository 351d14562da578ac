//! Attacks on the policy: what a backend, a caller or a runtime may do at the worst moment.
#![allow(clippy::unwrap_used, reason = "test support")]

mod backends;
mod beats;
mod cancellation;
mod detach;
mod endings;
#[path = "../faulty/mod.rs"]
mod faulty;
mod latches;
mod multi;
mod multi_grants;
mod odd;
mod owners;
mod permits;
mod promises;
mod read_write;
mod revocation;
mod sweeps;
mod waiting;
