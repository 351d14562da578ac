//! Storms of 8 processes on a master that sentinels watch, judged against a sequential model.

#[path = "../conformance/server.rs"]
mod server;

use std::process::ExitCode;
use std::time::Duration;

use lockkit_testkit::model::{self, Crowd};
use server::Server;

fn main() -> ExitCode {
    model::main_for(Duration::from_secs(10), Crowd::Processes(8), || {
        Server::new("LOCKKIT_TEST_REDIS_SENTINEL")
    })
}
