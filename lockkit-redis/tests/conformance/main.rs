//! The conformance suite on one Redis server.

mod server;

use std::process::ExitCode;

use server::Server;

fn main() -> ExitCode {
    lockkit_testkit::main(|| Server::new("LOCKKIT_TEST_REDIS"))
}
