//! Other processes.

mod mutexes;
mod parts;

use std::time::Duration;

use crate::{Case, Fixture, Outcome, Peer};

pub(super) fn cases() -> Vec<Case> {
    [mutexes::cases(), parts::cases()].concat()
}

/// How soon the locks of a process that has ended are free, and the lease to see that with.
fn after_crash(f: &Fixture) -> (Duration, Duration) {
    if f.harness().descriptor().after_crash == "at once" {
        // Far below the lease.
        (f.long(), f.soon())
    } else {
        (f.lease(), f.lease() * 2 + f.soon())
    }
}

async fn killed(f: &Fixture, child: Peer) -> Outcome {
    f.crashed();
    child.kill().await
}
