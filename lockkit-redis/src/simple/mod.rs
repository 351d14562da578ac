//! Locks as plain keys: for servers without pub/sub, or without the right to run scripts.
//!
//! A lock is taken by one `SET … NX PX`, under the key and with the value that a mutex of the direct
//! strategy has, so that the two exclude each other. There is no line, no fence and no message: who
//! waits looks again after a short while.

mod attempt;
mod backend;
mod change;
mod descriptor;
mod inspect;
mod record;
mod renew;
mod ticket;
mod waiting;

pub use backend::Simple;
