//! Storms of 8 processes on SQLite, judged against a sequential model.

#[path = "../conformance/database.rs"]
mod database;

use std::process::ExitCode;

use database::Database;
use lockkit_testkit::model::{self, Crowd};

fn main() -> ExitCode {
    model::main(Crowd::Processes(8), || Database::new("inotify"))
}
