//! The conformance suite on five independent servers.

mod corner;

use std::process::ExitCode;

use corner::Corner;

fn main() -> ExitCode {
    lockkit_testkit::main(Corner::new)
}
