//! Redis: single servers, sentinels, clusters, and several that know nothing of each other.

pub mod acl;
mod builder;
mod cli;
mod cluster;
pub mod env;
mod independent;
mod sentinels;
mod server;
mod set;

pub use builder::{AppendOnly, RedisBuilder};
pub use cluster::Cluster;
pub use independent::Independent;
pub use sentinels::{SERVICE, Sentinels};
pub use server::RedisServer;
pub use set::{RedisSet, Running};
