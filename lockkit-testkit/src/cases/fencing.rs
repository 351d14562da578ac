//! Fencing tokens rise, whatever happens in between.

use std::sync::Arc;
use std::time::Duration;

use lockkit_core::{Fence, Unlocked};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::topic;
use crate::failure::ensure;
use crate::fixture::{mutex, unlock};
use crate::{Failure, Fixture, Outcome};

topic! { "fencing":
    fences_rise_across_every_way_in_which_a_hold_ends [Fences],
    fences_rise_after_every_client_was_closed [Fences],
    fences_rise_among_eight_contending_clients [Fences],
    a_renewal_keeps_the_fence [Fences],
    a_guarded_store_refuses_whoever_was_overtaken [Fences],
}

async fn fences_rise_across_every_way_in_which_a_hold_ends(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let mut highest = Fence::new(0);
    let mut rises = |how: &str, fence: Fence| {
        ensure!(fence > highest, "{fence} came after {highest}, after {how}");
        highest = fence;
        Outcome::Ok(())
    };
    for round in 0..3 {
        let client = if round % 2 == 0 { &a } else { &b };
        let guard = f.gets(&client.mutex("n")).await?;
        rises("a release by id", guard.fence())?;
        unlock(guard).await?;

        let guard = f.gets(&client.mutex("n")).await?;
        rises("an unlock", guard.fence())?;
        drop(guard);

        let guard = f.gets(&client.mutex("n")).await?;
        rises("a drop", guard.fence())?;
        f.harness().expire(&mutex("n")?).await?;

        let second = f
            .gets(&b.mutex("n").ttl(f.lease()).without_watchdog())
            .await?;
        rises("being forgotten", second.fence())?;
        let lock = a.mutex("n");
        let third = timeout(f.lease() * 2 + f.soon(), lock.lock()).await??;
        rises("a lease that ran out", third.fence())?;
        let id = third.detach(f.long()).await?;
        b.release(&id).await?;
    }
    Ok(())
}

async fn fences_rise_after_every_client_was_closed(f: Arc<Fixture>) -> Outcome {
    let mut highest = Fence::new(0);
    for round in 0..3 {
        let client = f.loose_client().await?;
        let fence = f.passes(&client.mutex("n")).await?;
        ensure!(
            fence > highest,
            "{fence} came after {highest} in round {round}"
        );
        highest = fence;
        client.close().await?;
    }
    Ok(())
}

async fn fences_rise_among_eight_contending_clients(f: Arc<Fixture>) -> Outcome {
    let history = f.history();
    let mut tasks = JoinSet::new();
    for task in 0..8_u64 {
        let (client, history) = (f.client().await?, history.clone());
        tasks.spawn(async move {
            for round in 0..25 {
                let asked = history.now();
                let guard = client.mutex("n").lock().await?;
                let open = history.held(asked);
                sleep(Duration::from_micros(50 * (task + round) % 700)).await;
                history.ends(open, &guard);
                if round % 5 == 0 {
                    drop(guard);
                } else {
                    ensure!(
                        guard.unlock().await? == Unlocked::Clean,
                        "the hold was lost"
                    );
                }
            }
            Outcome::Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    let count = history.spans().len();
    ensure!(count == 200, "{count} of 200 acquisitions were recorded");
    history.sound()
}

async fn a_renewal_keeps_the_fence(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let guard = f.gets(&a.mutex("n").ttl(f.lease())).await?;
    let fence = guard.fence();
    for _ in 0..6 {
        sleep(f.lease() / 4).await;
        let snapshot = b.inspect(&mutex("n")?).await?;
        let same =
            snapshot.fence == Some(fence) && snapshot.holders.iter().all(|h| h.fence == fence);
        ensure!(same, "granted {fence}, and now {snapshot:?}");
    }
    ensure!(guard.fence() == fence, "the guard has another fence");
    Ok(())
}

/// What a store must be that is written to under a lock.
#[derive(Debug)]
struct Store {
    highest: Fence,
    writes: Vec<&'static str>,
}

impl Store {
    fn write(&mut self, fence: Fence, what: &'static str) -> Result<(), Failure> {
        ensure!(
            fence >= self.highest,
            "{what} with {fence} after {}",
            self.highest
        );
        self.highest = fence;
        self.writes.push(what);
        Ok(())
    }
}

async fn a_guarded_store_refuses_whoever_was_overtaken(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let mut store = Store {
        highest: Fence::new(0),
        writes: Vec::new(),
    };
    let slow = f
        .gets(&a.mutex("n").ttl(f.lease()).without_watchdog())
        .await?;
    store.write(slow.fence(), "slow, in time")?;
    store.write(slow.fence(), "slow, again")?;
    let quick = timeout(f.lease() * 2 + f.soon(), b.mutex("n").lock()).await??;
    store.write(quick.fence(), "quick")?;
    unlock(quick).await?;
    // Even with nobody holding it now:
    let late = store.write(slow.fence(), "slow, late");
    ensure!(late.is_err(), "a late write was let through: {store:?}");
    Ok(())
}
