#![doc = include_str!("../docs/sqlite.md")]

mod backend;
mod bell;
mod config;
mod connection;
mod database;
mod descriptor;
#[cfg(target_os = "linux")]
mod ear;
#[cfg(not(target_os = "linux"))]
#[path = "ear_none.rs"]
mod ear;
mod error;
mod files;
mod gate;
mod inspect;
mod queue;
mod registry;
mod release;
mod renew;
mod schema;
mod session;
mod shared;
mod ticket;
mod transaction;
mod view;
mod watch;
mod writer;

pub use backend::Sqlite;
