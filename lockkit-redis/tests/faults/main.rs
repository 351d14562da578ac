//! What must hold while servers, connections and processes fail.
//!
//! Each test has a server of its own, and breaks it in earnest: it is killed, stopped, restarted,
//! flushed, filled; connections are cut, stalled, robbed of replies or of messages.

#![allow(clippy::unwrap_used, reason = "tests")]

mod cancellation;
mod clock;
mod connections;
mod foreign;
mod kinds;
mod memory;
mod messages;
mod renewal;
mod restarts;
mod rig;
mod rights;
mod scripts;
mod unheard;
