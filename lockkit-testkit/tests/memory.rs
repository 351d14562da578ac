//! The suite on the in-memory backend, in virtual time.

use std::process::ExitCode;

use lockkit_testkit::{InMemory, Time};

fn main() -> ExitCode {
    lockkit_testkit::main(|| InMemory::new(Time::Virtual))
}
