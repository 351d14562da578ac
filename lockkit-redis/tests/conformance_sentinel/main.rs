//! The conformance suite on a master that sentinels watch.

#[path = "../conformance/server.rs"]
mod server;

use std::process::ExitCode;

use server::Server;

fn main() -> ExitCode {
    lockkit_testkit::main(|| Server::new("LOCKKIT_TEST_REDIS_SENTINEL"))
}
