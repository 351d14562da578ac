//! `cargo xtask servers`, and the servers of the other tasks.
//!
//! Memory and SQLite need none. A backend with a server adds it here and in `lockkit-servers`:
//! find or install its program, start it on a free port in a directory of its own, and pass its
//! URL to the tests in the environment. A server that is asked for but does not start fails the
//! task, because a test that is skipped for want of a server proves nothing.

mod command;
mod down;
mod identity;
mod install;
mod needed;
mod state;
mod status;
mod up;

pub(crate) use command::{Task, run};
pub(crate) use needed::Servers;
