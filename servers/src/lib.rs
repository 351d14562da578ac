//! Private instances of the servers that lockkit's backends lock in.
//!
//! Each server has a directory and a port of its own on loopback and dies with its owner, even
//! if that is killed. Tests start one where they break it; those that leave it as it is use the
//! ones that `cargo xtask test` has started and named in the [environment](redis::env).
//!
//! Everything here blocks, for milliseconds to seconds. In an async test, start servers first or
//! in `spawn_blocking`.
//!
//! ```no_run
//! use lockkit_servers::redis::RedisServer;
//!
//! let mut server = RedisServer::start()?;
//! server.cli(&["SET", "key", "value"])?;
//! server.kill()?;
//! server.restart()?; // on the same port
//! # Ok::<(), anyhow::Error>(())
//! ```

mod authority;
mod clock;
mod patience;
mod port;
mod process;
pub mod redis;
mod scratch;

pub use authority::{Authority, Certificate};
pub use clock::Clock;
pub use scratch::scratch;
