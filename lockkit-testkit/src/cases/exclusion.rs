//! One holder at a time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockkit_core::Unlocked;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::topic;
use crate::failure::ensure;
use crate::{Fixture, Outcome};

topic! { "exclusion":
    a_name_has_one_holder_whoever_asks,
    a_name_can_be_locked_again_at_once,
    no_update_is_lost_among_eight_tasks,
    a_hundred_contenders_never_meet_inside,
    thousands_of_names_are_held_at_once,
}

async fn a_name_has_one_holder_whoever_asks(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let lock = a.mutex("n");
    let guard = lock.lock().await?;
    ensure!(guard.is_held(), "held, and not held");
    ensure!(
        lock.try_lock().await?.is_none(),
        "the same lock let a second holder in"
    );
    ensure!(
        a.mutex("n").try_lock().await?.is_none(),
        "another lock of the client let one in"
    );
    ensure!(
        b.mutex("n").try_lock().await?.is_none(),
        "another client was let in"
    );
    let other = b.mutex("n2").try_lock().await?;
    ensure!(other.is_some(), "another name is busy");

    ensure!(
        guard.unlock().await? == Unlocked::Clean,
        "the hold was lost"
    );
    let next = b.mutex("n").try_lock().await?;
    ensure!(next.is_some(), "busy after the unlock");
    ensure!(
        lock.try_lock().await?.is_none(),
        "the first client was let in again"
    );
    Ok(())
}

async fn a_name_can_be_locked_again_at_once(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    for round in 0..10 {
        let Some(guard) = a.mutex("n").try_lock().await? else {
            return Err(crate::Failure::new(format!("busy in round {round}")));
        };
        ensure!(
            b.mutex("n").try_lock().await?.is_none(),
            "two holders in round {round}"
        );
        ensure!(
            guard.unlock().await? == Unlocked::Clean,
            "lost in round {round}"
        );
    }
    Ok(())
}

async fn no_update_is_lost_among_eight_tasks(f: Arc<Fixture>) -> Outcome {
    const NAMES: [&str; 2] = ["x", "y"];
    let rounds = |task: usize| match task {
        0 => 10,
        _ => f.by_clock(100, 30),
    };
    let counters = Arc::new([Mutex::new(0_usize), Mutex::new(0_usize)]);
    let history = f.history();
    let mut tasks = JoinSet::new();
    let clients = [f.client().await?, f.client().await?, f.client().await?];
    for task in 0..8 {
        let client = clients[task % clients.len()].clone();
        let (counters, history) = (Arc::clone(&counters), history.clone());
        let rounds = rounds(task);
        tasks.spawn(async move {
            for round in 0..rounds {
                let which = (task + round) % 2;
                let asked = history.now();
                let guard = client.mutex(NAMES[which]).lock().await?;
                let open = history.held(asked);
                // Read, dawdle, write: an update is lost if anybody else is inside.
                let seen = *counters[which].lock().unwrap_or_else(|e| e.into_inner());
                sleep(Duration::from_millis(1)).await;
                *counters[which].lock().unwrap_or_else(|e| e.into_inner()) = seen + 1;
                history.ends(open, &guard);
                ensure!(
                    guard.unlock().await? == Unlocked::Clean,
                    "lost in round {round}"
                );
            }
            Outcome::Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    let total: usize = counters
        .iter()
        .map(|c| *c.lock().unwrap_or_else(|e| e.into_inner()))
        .sum();
    let expected: usize = (0..8).map(rounds).sum();
    ensure!(total == expected, "{total} of {expected} updates are left");
    history.sound()
}

async fn a_hundred_contenders_never_meet_inside(f: Arc<Fixture>) -> Outcome {
    let inside = Arc::new(AtomicUsize::new(0));
    let history = f.history();
    let mut tasks = JoinSet::new();
    for _ in 0..10 {
        let client = f.client().await?;
        for _ in 0..10 {
            let (client, inside, history) = (client.clone(), Arc::clone(&inside), history.clone());
            tasks.spawn(async move {
                let asked = history.now();
                let guard = client.mutex("n").lock().await?;
                let open = history.held(asked);
                let others = inside.fetch_add(1, Ordering::SeqCst);
                sleep(Duration::from_millis(5)).await;
                inside.fetch_sub(1, Ordering::SeqCst);
                history.ends(open, &guard);
                ensure!(others == 0, "{others} others were inside");
                ensure!(
                    guard.unlock().await? == Unlocked::Clean,
                    "the hold was lost"
                );
                Ok(())
            });
        }
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    history.sound()
}

async fn thousands_of_names_are_held_at_once(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let count = f.by_clock(2000, 400);
    let name = |i: usize| format!("n/{i}");
    let mut guards = Vec::new();
    for i in 0..count {
        guards.push(f.gets(&a.mutex(name(i))).await?);
    }
    let listed = b.list("n/").await?.len();
    ensure!(listed == count, "{listed} of {count} are listed");
    // Every second one is let go, and exactly those are free.
    for guard in guards.extract_if(.., |guard| is_odd(guard.name().as_str())) {
        ensure!(guard.unlock().await? == Unlocked::Clean, "a hold was lost");
    }
    for i in (0..count).step_by(count / 100).flat_map(|i| [i, i + 1]) {
        let free = b.mutex(name(i)).try_lock().await?.is_some();
        ensure!(
            free == (i % 2 == 1),
            "{} is {}",
            name(i),
            if free { "free" } else { "busy" }
        );
    }
    ensure!(
        guards.iter().all(|guard| guard.is_held()),
        "a hold was lost"
    );
    Ok(())
}

fn is_odd(name: &str) -> bool {
    name.ends_with(['1', '3', '5', '7', '9'])
}
