#![doc = include_str!("../docs/sqlite.md")]

mod admit;
mod backend;
mod bell;
mod config;
mod connection;
mod convert;
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
mod hall;
mod holders;
mod inspect;
mod kind;
mod latch;
mod news;
mod outlook;
mod queue;
mod registry;
mod release;
mod renew;
mod request;
mod schema;
mod session;
mod shared;
mod shared_gate;
mod size;
mod ticket;
mod together;
mod transaction;
mod view;
mod watch;
mod writer;

pub use backend::Sqlite;
