//! Waiting for a latch.

use std::sync::Arc;
use std::time::Duration;

use lockkit_core::ErrorKind;
use tokio::time::Instant;

use super::{latch, waits};
use crate::cases::topic;
use crate::failure::ensure;
use crate::{Fixture, Outcome};

topic! { "latch":
    everybody_who_waits_goes_on_when_the_count_is_zero [Latch],
    who_comes_late_returns_at_once [Latch],
    a_wait_for_a_latch_that_runs_out_leaves_no_place_in_line [Latch],
    who_stops_waiting_for_a_latch_leaves_nothing [Latch],
    a_hundred_who_wait_for_a_latch_all_go_on [Latch],
    who_waits_for_a_latch_outlasts_its_own_lease [Latch],
}

async fn everybody_who_waits_goes_on_when_the_count_is_zero(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    a.latch("n").try_set(2).await?;
    let line = [
        waits(&f, &a).await?,
        waits(&f, &b).await?,
        waits(&f, &b).await?,
    ];
    a.latch("n").count_down("x").await?;
    for waiting in &line {
        ensure!(waiting.waits().await, "passed a closed latch");
    }
    b.latch("n").count_down("y").await?;
    for waiting in line {
        waiting.served().await?;
    }
    let snapshot = a.inspect(&latch("n")?).await?;
    ensure!(snapshot.is_idle(), "something is left: {snapshot:?}");
    Ok(())
}

async fn who_comes_late_returns_at_once(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    a.latch("n").try_set(1).await?;
    a.latch("n").count_down("x").await?;
    for client in [&a, &b, &f.client().await?] {
        let before = client.wire().requests();
        client.latch("n").wait_at_most(Duration::ZERO).await?;
        let lock = client.latch("n");
        f.is_done(async move { lock.wait().await }).await?;
        let requests = client.wire().requests() - before;
        ensure!(requests == 2, "{requests} requests for 2 waits");
    }
    Ok(())
}

async fn a_wait_for_a_latch_that_runs_out_leaves_no_place_in_line(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    a.latch("n").try_set(1).await?;
    for limit in [Duration::ZERO, Duration::from_millis(60)] {
        let since = Instant::now();
        let answer = b.latch("n").wait_at_most(limit).await;
        ensure!(
            answer.is_err_and(|e| e.kind() == ErrorKind::Timeout),
            "passed a closed latch"
        );
        ensure!(since.elapsed() >= limit, "gave up early");
    }
    f.until_of(&a, &latch("n")?, "without waiters", |s| {
        s.waiters.is_empty()
    })
    .await?;
    let count = a.latch("n").count().await?;
    ensure!(count == Some(1), "{count:?} left");
    a.latch("n").count_down("x").await?;
    b.latch("n").wait_at_most(Duration::ZERO).await?;
    Ok(())
}

async fn who_stops_waiting_for_a_latch_leaves_nothing(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    a.latch("n").try_set(1).await?;
    let line = [
        waits(&f, &b).await?,
        waits(&f, &a).await?,
        waits(&f, &b).await?,
    ];
    let [first, second, third] = line;
    first.drop_call().await;
    third.drop_call().await;
    f.until_of(&a, &latch("n")?, "one waiter", |s| s.waiters.len() == 1)
        .await?;
    a.latch("n").count_down("x").await?;
    second.served().await
}

async fn a_hundred_who_wait_for_a_latch_all_go_on(f: Arc<Fixture>) -> Outcome {
    const WAITERS: usize = 100;
    let (a, b) = (f.client().await?, f.client().await?);
    a.latch("n").try_set(1).await?;
    let mut calls = Vec::new();
    for number in 0..WAITERS {
        let lock = if number % 2 == 0 { &a } else { &b }.latch("n");
        calls.push(tokio::spawn(async move { lock.wait().await }));
    }
    f.until_of(&a, &latch("n")?, "all in line", |s| {
        s.waiters.len() == WAITERS
    })
    .await?;
    b.latch("n").count_down("x").await?;
    for call in calls {
        f.is_done(async move { Ok(call.await) }).await???;
    }
    f.until_of(&a, &latch("n")?, "without waiters", |s| {
        s.waiters.is_empty()
    })
    .await?;
    Ok(())
}

async fn who_waits_for_a_latch_outlasts_its_own_lease(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    a.latch("n").try_set(1).await?;
    let lock = b.latch("n").ttl(f.lease());
    let waiting = (f.queues(&a, &latch("n")?, async move { lock.wait().await })).await?;
    tokio::time::sleep(f.lease() * 2).await;
    let waiters = a.inspect(&latch("n")?).await?.waiters;
    ensure!(waiters.len() == 1, "its place ran out: {waiters:?}");
    a.latch("n").count_down("x").await?;
    waiting.served().await
}
