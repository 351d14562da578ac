//! The conformance suite with `strategy=simple`, on one Redis server.

#[path = "../conformance/server.rs"]
mod server;

use std::process::ExitCode;

use server::Server;

fn main() -> ExitCode {
    lockkit_testkit::main(|| Server::simple("LOCKKIT_TEST_REDIS"))
}
