//! A cluster: each bucket's keys are in one slot, and each slot on one master at a time.
//!
//! The client library's own cluster connection repeats requests by itself, hides when it connects
//! anew, and does not tell when a subscription was ended by a moved slot; so the slots are followed
//! here, over the same links as everywhere.

mod channels;
mod listen;
mod look;
mod map;
mod member;
mod nodes;
mod run;

pub(crate) use nodes::Cluster;
