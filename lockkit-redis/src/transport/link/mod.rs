//! One connection, kept alive for ever.
//!
//! The client library's own reconnecting connection gives up when idle, never notices a half-open
//! connection, and stays on a demoted master. So this one asks whenever something was not answered
//! in time, and now and then when nothing was asked at all; and it connects anew, wherever the
//! server is by then, until it is closed.

mod connection;
mod doubt;
mod ears;
mod handle;
mod supervise;

pub(super) use doubt::{Doubt, Unanswered};
pub(super) use ears::NoEars;
pub(crate) use ears::{Arrival, Ears};
pub(super) use handle::closed;
pub(crate) use handle::{Link, Settings};
