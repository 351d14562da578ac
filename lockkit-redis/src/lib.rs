#![doc = include_str!("docs/redis.md")]

mod backend;
mod by_kind;
mod config;
mod connect;
mod contention;
mod convert;
mod descriptor;
mod error;
mod gather;
mod hall;
mod inbox;
mod inspect;
mod key;
mod latch;
mod list;
mod mode;
mod mutex;
mod open;
mod probe;
mod redlock;
mod renew;
mod replicas;
mod script;
mod scripts;
mod shared;
mod short;
mod simple;
mod size;
mod ticket;
mod together;
mod transport;
mod unanswered;

pub use backend::Redis;
pub use open::connect;
pub use redlock::Redlock;
pub use simple::Simple;
