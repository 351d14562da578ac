//! The conformance suite on SQLite.

mod database;

use std::process::ExitCode;

use database::Database;

fn main() -> ExitCode {
    lockkit_testkit::main(|| Database::new("inotify"))
}
