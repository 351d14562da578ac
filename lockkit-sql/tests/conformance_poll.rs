//! The conformance suite on SQLite where nobody tells of changes, as on some platforms.

#[path = "conformance/database.rs"]
mod database;

use std::process::ExitCode;

use database::Database;

fn main() -> ExitCode {
    lockkit_testkit::main(|| Database::new("poll"))
}
