#![doc = include_str!("docs/redis.md")]

mod backend;
mod config;
mod connect;
mod descriptor;
mod error;
mod inbox;
mod key;
mod mutex;
mod probe;
mod renew;
mod script;
mod scripts;
mod shared;
mod ticket;
mod transport;

pub use backend::Redis;
