//! A storm of tasks in this process.

use std::sync::Arc;
use std::time::Duration;

use lockkit_core::{Descriptor, Instant, Locker, LockerOptions};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::actor::{Actor, Part, Scene};
use super::plan::lease;
use super::record::Record;
use crate::{Fault, Harness, Outcome, Wire};

/// How many clients the tasks share.
const CLIENTS: u32 = 8;

/// One client with its tasks.
struct Company {
    wire: Wire,
    tasks: JoinSet<()>,
}

/// A client whose wire can be cut, with leases that run out in a storm.
pub(super) fn client(wire: &Wire, descriptor: &Descriptor) -> Outcome<Locker> {
    let mut options = LockerOptions::default();
    options.ttl = lease(descriptor);
    options.call_timeout = Duration::from_secs(5);
    Ok(Locker::with_options(wire.clone(), options)?)
}

/// Loses some requests and some replies.
pub(super) fn trouble(wire: &Wire, rng: &mut StdRng) {
    let fault = match rng.random_range(0..3) {
        0 => Fault::Cut,
        1 => Fault::LostReply,
        _ => Fault::LateReply(Duration::from_millis(20)),
    };
    wire.set_for(fault, rng.random_range(1..6));
}

/// Lets `tasks` tasks act until the end, and kills one client after the other. What they wrote, and
/// how many were killed.
pub(super) async fn tasks(
    harness: &dyn Harness,
    scene: &Scene,
    tasks: u32,
    seed: u64,
) -> Outcome<(Vec<Record>, usize)> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut companies = Vec::new();
    for number in 0..CLIENTS {
        companies.push(company(harness, scene, tasks, number, 0, seed).await?);
    }
    let clock = harness.descriptor().clock;
    let mut kills = 0;
    let mut next_kill: Instant = clock.now() + Duration::from_millis(500);
    while clock.now() < scene.ends {
        sleep(Duration::from_millis(rng.random_range(20..120))).await;
        let number = rng.random_range(0..CLIENTS);
        let some = &mut companies[number as usize];
        if clock.now() < next_kill {
            trouble(&some.wire, &mut rng);
            continue;
        }
        // Nothing of it reaches the service any more, and nothing in it lives.
        some.wire.set(Fault::Cut);
        some.tasks.abort_all();
        kills += 1;
        next_kill = clock.now() + Duration::from_millis(rng.random_range(300..1_500));
        let incarnation = u32::try_from(kills)?;
        *some = company(harness, scene, tasks, number, incarnation, seed).await?;
    }
    for mut some in companies {
        while some.tasks.join_next().await.is_some() {}
    }
    Ok((scene.log.take(), kills))
}

async fn company(
    harness: &dyn Harness,
    scene: &Scene,
    slots: u32,
    number: u32,
    incarnation: u32,
    seed: u64,
) -> Outcome<Company> {
    let wire = Wire::new(Arc::from(harness.backend().await?));
    let locker = client(&wire, harness.descriptor())?;
    let mut tasks = JoinSet::new();
    for slot in (number..slots).step_by(CLIENTS as usize) {
        let part = Part {
            slot,
            incarnation,
            slots,
            seed,
        };
        tasks.spawn(Actor::new(scene.clone(), part, locker.clone()).run());
    }
    Ok(Company { wire, tasks })
}
