//! Storms of 64 tasks on the in-memory backend, judged against a sequential model.

use std::process::ExitCode;

use lockkit_testkit::model::{self, Crowd};
use lockkit_testkit::{InMemory, Time};

fn main() -> ExitCode {
    model::main(Crowd::Tasks(64), || InMemory::new(Time::Real))
}
