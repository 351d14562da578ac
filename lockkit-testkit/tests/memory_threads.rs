//! The suite on the in-memory backend, on the real clock and several threads: what goes wrong
//! only when two things happen at once.

use std::process::ExitCode;

use lockkit_testkit::{InMemory, Time};

fn main() -> ExitCode {
    lockkit_testkit::main(|| InMemory::new(Time::Real))
}
