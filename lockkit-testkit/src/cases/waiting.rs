//! Waiting: woken in time, bounded in time, served in order.

use std::sync::Arc;
use std::time::Duration;

use lockkit_core::{ErrorKind, Guard, Mutex};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::topic;
use crate::failure::ensure;
use crate::fixture::{mutex, unlock};
use crate::{Client, Failure, Fixture, Outcome};

topic! { "waiting":
    a_waiter_waits_and_gets_in_when_the_holder_unlocks,
    a_waiter_gets_in_when_the_holder_is_gone_without_a_word,
    a_wait_that_runs_out_is_a_timeout_and_leaves_no_place_in_line,
    a_try_answers_at_once_and_leaves_no_place_in_line,
    no_time_to_wait_is_one_attempt,
    the_longest_times_do_not_overflow,
    a_lease_out_of_range_is_refused_before_any_request,
    a_waiter_is_not_starved_by_a_client_that_locks_again_at_once [Line],
    waiters_are_served_in_the_order_of_their_coming [Fair],
    a_fair_newcomer_does_not_pass_those_who_wait [Fair],
    a_waiter_that_gives_up_does_not_hold_up_those_behind_it [Fair],
}

fn spawned(lock: Mutex) -> JoinHandle<lockkit_core::Result<Guard>> {
    tokio::spawn(async move { lock.lock().await })
}

async fn a_waiter_waits_and_gets_in_when_the_holder_unlocks(f: Arc<Fixture>) -> Outcome {
    const ROUNDS: u32 = 20;
    let (mut a, mut b) = (f.client().await?, f.client().await?);
    let mut guard = f.gets(&a.mutex("n")).await?;
    let mut waited = Duration::ZERO;
    for round in 0..ROUNDS {
        let waiter = spawned(b.mutex("n"));
        f.stand(&a, &mutex("n")?, 1).await?;
        sleep(Duration::from_millis(10)).await;
        ensure!(!waiter.is_finished(), "round {round}: two holders");
        let since = Instant::now();
        unlock(guard).await?;
        guard = timeout(f.soon(), waiter)
            .await
            .map_err(|_| Failure::new(format!("round {round}: the waiter was not woken")))???;
        waited += since.elapsed();
        (a, b) = (b, a);
    }
    // Far below any timer that could have stood in for the bell.
    let bound = f.by_clock(Duration::from_millis(20), Duration::from_millis(300));
    ensure!(
        waited < ROUNDS * bound,
        "{ROUNDS} hand-overs took {waited:?}"
    );
    Ok(())
}

async fn a_waiter_gets_in_when_the_holder_is_gone_without_a_word(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let guard = f
        .gets(&a.mutex("n").ttl(f.lease()).without_watchdog())
        .await?;
    let next = timeout(f.lease() * 2 + f.soon(), b.mutex("n").lock()).await??;
    ensure!(!guard.is_held(), "two believe in it");
    ensure!(
        f.rises(guard.fence(), next.fence()),
        "{} after {}",
        next.fence(),
        guard.fence()
    );
    Ok(())
}

async fn a_wait_that_runs_out_is_a_timeout_and_leaves_no_place_in_line(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let guard = f.gets(&a.mutex("n")).await?;
    let wait = Duration::from_millis(200);
    for lock in [b.mutex("n"), a.mutex("n")] {
        let since = Instant::now();
        let Err(error) = timeout(f.soon(), lock.wait(wait).lock()).await? else {
            return Err(Failure::new("two holders"));
        };
        let waited = since.elapsed();
        ensure!(error.kind() == ErrorKind::Timeout, "{error}");
        ensure!(waited >= wait, "gave up early, after {waited:?}");
        let bound = f.by_clock(wait + Duration::from_millis(20), Duration::from_secs(3));
        ensure!(waited <= bound, "gave up late, after {waited:?}");
        f.until(&a, "n", "without waiters", |s| s.waiters.is_empty())
            .await?;
    }
    ensure!(guard.is_held(), "the holder lost it");
    Ok(())
}

async fn a_try_answers_at_once_and_leaves_no_place_in_line(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let guard = f.gets(&a.mutex("n")).await?;
    let since = Instant::now();
    for _ in 0..10 {
        ensure!(b.mutex("n").try_lock().await?.is_none(), "two holders");
    }
    let bound = f.by_clock(Duration::from_millis(10), Duration::from_secs(3));
    ensure!(
        since.elapsed() < bound,
        "ten tries took {:?}",
        since.elapsed()
    );
    let waiters = a.inspect(&mutex("n")?).await?.waiters;
    ensure!(
        waiters.is_empty(),
        "a try took a place in line: {waiters:?}"
    );
    unlock(guard).await?;
    let free = b.mutex("n").try_lock().await?;
    ensure!(free.is_some(), "an earlier try is in the way");
    Ok(())
}

async fn no_time_to_wait_is_one_attempt(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let guard = b.mutex("n").wait(Duration::ZERO).lock().await?;
    let before = a.wire().requests();
    let Err(error) = a.mutex("n").wait(Duration::ZERO).lock().await else {
        return Err(Failure::new("two holders"));
    };
    ensure!(error.kind() == ErrorKind::Timeout, "{error}");
    let requests = a.wire().requests() - before;
    ensure!(requests == 1, "{requests} requests");
    unlock(guard).await?;
    Ok(())
}

async fn the_longest_times_do_not_overflow(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let longest = *f.harness().descriptor().ttl.end();
    let guard = a.mutex("n").ttl(longest).wait(Duration::MAX).lock().await?;
    ensure!(guard.is_held(), "a long lease is none");
    let waiter = spawned(b.mutex("n").wait(Duration::MAX));
    f.stand(&a, &mutex("n")?, 1).await?;
    unlock(guard).await?;
    unlock(timeout(f.soon(), waiter).await???).await?;
    Ok(())
}

async fn a_lease_out_of_range_is_refused_before_any_request(f: Arc<Fixture>) -> Outcome {
    let client = f.client().await?;
    let (least, most) = f.harness().descriptor().ttl.clone().into_inner();
    let bad = [
        Duration::ZERO,
        least / 2,
        most.saturating_add(Duration::from_millis(1)),
    ];
    for ttl in bad.into_iter().filter(|ttl| !(least..=most).contains(ttl)) {
        for outcome in [
            client.mutex("n").ttl(ttl).lock().await.map(Some),
            client.mutex("n").ttl(ttl).try_lock().await,
        ] {
            let Err(error) = outcome else {
                return Err(Failure::new(format!("a lease of {ttl:?} was taken")));
            };
            ensure!(error.kind() == ErrorKind::InvalidArgument, "{error}");
        }
    }
    ensure!(client.wire().requests() == 0, "a request was sent");
    Ok(())
}

async fn a_waiter_is_not_starved_by_a_client_that_locks_again_at_once(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let mut guard = f.gets(&a.mutex("n")).await?;
    let waiter = spawned(b.mutex("n"));
    f.stand(&a, &mutex("n")?, 1).await?;
    let mut passed_over = 0;
    loop {
        unlock(guard).await?;
        match a.mutex("n").try_lock().await? {
            Some(again) => guard = again,
            None => break,
        }
        passed_over += 1;
        ensure!(passed_over <= 1, "passed over twice");
    }
    unlock(timeout(f.soon(), waiter).await???).await?;
    Ok(())
}

/// Lets `count` waiters come one after the other; each tells its number when it is served.
async fn line_up(
    f: &Fixture,
    clients: &[Client],
    count: usize,
    served: &mpsc::UnboundedSender<usize>,
) -> Outcome<Vec<JoinHandle<Outcome>>> {
    let mut waiters = Vec::new();
    for number in 0..count {
        let lock = clients[number % clients.len()].mutex("n").fair();
        let served = served.clone();
        waiters.push(tokio::spawn(async move {
            let guard = lock.lock().await?;
            let _ = served.send(number);
            sleep(Duration::from_millis(1)).await;
            unlock(guard).await?;
            Ok(())
        }));
        f.until(&clients[0], "n", "one waiter more", |s| {
            s.waiters.len() == number + 1
        })
        .await?;
    }
    Ok(waiters)
}

async fn next_served(f: &Fixture, served: &mut mpsc::UnboundedReceiver<usize>) -> Outcome<usize> {
    let number = timeout(f.soon(), served.recv()).await;
    number
        .ok()
        .flatten()
        .ok_or_else(|| Failure::new("nobody is served any more"))
}

async fn waiters_are_served_in_the_order_of_their_coming(f: Arc<Fixture>) -> Outcome {
    let clients = [f.client().await?, f.client().await?, f.client().await?];
    let guard = f.gets(&clients[0].mutex("n").fair()).await?;
    let (send, mut served) = mpsc::unbounded_channel();
    let _waiters = line_up(&f, &clients, 10, &send).await?;
    unlock(guard).await?;
    let mut order = Vec::new();
    for _ in 0..10 {
        order.push(next_served(&f, &mut served).await?);
    }
    ensure!(order.is_sorted(), "served in the order {order:?}");
    f.passes(&clients[0].mutex("n")).await?;
    Ok(())
}

async fn a_fair_newcomer_does_not_pass_those_who_wait(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    for _ in 0..5 {
        let guard = f.gets(&a.mutex("n").fair()).await?;
        let first = spawned(b.mutex("n").fair());
        f.stand(&a, &mutex("n")?, 1).await?;
        unlock(guard).await?;
        // The one in line may not have heard of it yet.
        let newcomer = a.mutex("n").fair().try_lock().await?;
        ensure!(newcomer.is_none(), "a newcomer passed");
        unlock(timeout(f.soon(), first).await???).await?;
    }
    Ok(())
}

async fn a_waiter_that_gives_up_does_not_hold_up_those_behind_it(f: Arc<Fixture>) -> Outcome {
    let clients = [f.client().await?, f.client().await?];
    let guard = f.gets(&clients[0].mutex("n").fair()).await?;
    let (send, mut served) = mpsc::unbounded_channel();
    let waiters = line_up(&f, &clients, 5, &send).await?;
    // The first in line, and one in the middle.
    for quitter in [0, 2] {
        waiters[quitter].abort();
    }
    f.until(&clients[0], "n", "two waiters fewer", |s| {
        s.waiters.len() == 3
    })
    .await?;
    ensure!(
        served.try_recv().is_err(),
        "a quitter let somebody in beside the holder"
    );
    unlock(guard).await?;
    for expected in [1, 3, 4] {
        let number = next_served(&f, &mut served).await?;
        ensure!(number == expected, "{number} was served before {expected}");
    }
    f.passes(&clients[0].mutex("n")).await?;
    Ok(())
}
