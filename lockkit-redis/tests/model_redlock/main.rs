//! Storms of 8 processes on five independent servers, judged against a sequential model.

#[path = "../redlock_conformance/corner.rs"]
mod corner;

use std::process::ExitCode;
use std::time::Duration;

use corner::Corner;
use lockkit_testkit::model::{self, Crowd};

fn main() -> ExitCode {
    model::main_for(Duration::from_secs(10), Crowd::Processes(8), Corner::new)
}
