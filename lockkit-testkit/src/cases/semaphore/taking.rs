//! Taking permits: never too many, in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use lockkit_core::{ErrorKind, Guard, Semaphore};
use tokio::task::JoinSet;

use super::{available, refused, semaphore, taken};
use crate::cases::topic;
use crate::failure::ensure;
use crate::fixture::unlock;
use crate::{Client, Failure, Fixture, Outcome, Waiting};

topic! { "semaphore":
    no_more_permits_are_out_than_there_are [Semaphore],
    no_more_permits_are_out_than_there_are_whoever_asks [Semaphore],
    permits_are_taken_several_at_once_or_not_at_all [Semaphore],
    those_who_wait_are_served_in_the_order_of_their_coming [Semaphore],
    who_wants_many_is_not_passed_by_who_wants_few [Semaphore],
    a_try_does_not_pass_those_who_wait [Semaphore],
    a_release_lets_in_as_many_as_fit [Semaphore],
    who_gives_up_waiting_for_many_lets_the_others_in_at_once [Semaphore],
    a_wait_for_permits_that_runs_out_leaves_no_place_in_line [Semaphore],
    permits_have_rising_fences [Semaphore, Fences],
}

async fn wants(
    f: &Fixture,
    client: &Client,
    lock: &Semaphore,
    count: u32,
) -> Outcome<Waiting<Guard>> {
    let lock = lock.clone();
    (f.queues(client, &semaphore("n")?, async move {
        lock.acquire_many(count).await
    }))
    .await
}

async fn no_more_permits_are_out_than_there_are(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let mut guards = Vec::new();
    for client in [&a, &b, &b] {
        guards.push(f.gets(&client.semaphore("n", 3)).await?);
    }
    for client in [&a, &b] {
        let tried = client.semaphore("n", 3).try_acquire().await?;
        ensure!(tried.is_none(), "a fourth of 3 permits");
    }
    let waiting = wants(&f, &a, &b.semaphore("n", 3), 1).await?;
    ensure!(waiting.waits().await, "a fourth of 3 permits");
    for guard in guards {
        ensure!(guard.is_held(), "a permit was lost");
        unlock(guard).await?;
    }
    unlock(waiting.served().await?).await?;
    available(&a, "n", 3, 3).await
}

async fn no_more_permits_are_out_than_there_are_whoever_asks(f: Arc<Fixture>) -> Outcome {
    const LIMIT: u32 = 4;
    let clients = [f.client().await?, f.client().await?, f.client().await?];
    let (out, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let mut tasks = JoinSet::new();
    for number in 0..12_u32 {
        let client = &clients[number as usize % clients.len()];
        let lock = client.semaphore("n", LIMIT);
        let (out, most) = (Arc::clone(&out), Arc::clone(&most));
        let count = 1 + number % 3;
        tasks.spawn(async move {
            for _ in 0..5 {
                let guard = lock.acquire_many(count).await?;
                most.fetch_max(out.fetch_add(count, SeqCst) + count, SeqCst);
                tokio::time::sleep(Duration::from_millis(1)).await;
                out.fetch_sub(count, SeqCst);
                unlock(guard).await?;
            }
            Outcome::Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    let most = most.load(SeqCst);
    ensure!(most <= LIMIT, "{most} of {LIMIT} permits were out");
    ensure!(most > 1, "permits were handed out one at a time");
    available(&clients[0], "n", LIMIT, LIMIT).await
}

async fn permits_are_taken_several_at_once_or_not_at_all(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let three = f.gets(&a.semaphore("n", 5).permits(3)).await?;
    available(&b, "n", 5, 2).await?;
    let tried = b.semaphore("n", 5).try_acquire_many(3).await?;
    ensure!(tried.is_none(), "6 of 5 permits");
    available(&a, "n", 5, 2).await?;
    let two = f.gets(&b.semaphore("n", 5).permits(2)).await?;
    available(&a, "n", 5, 0).await?;
    unlock(three).await?;
    available(&b, "n", 5, 3).await?;
    unlock(two).await?;
    available(&b, "n", 5, 5).await
}

async fn those_who_wait_are_served_in_the_order_of_their_coming(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let mut held = f.gets(&a.semaphore("n", 1)).await?;
    let mut line = Vec::new();
    for number in 0..6 {
        let client = if number % 2 == 0 { &b } else { &a };
        line.push(wants(&f, &a, &client.semaphore("n", 1), 1).await?);
    }
    let mut line = line.into_iter();
    while let Some(next) = line.next() {
        unlock(held).await?;
        held = next.served().await?;
        let waiting = a.inspect(&semaphore("n")?).await?.waiters.len();
        ensure!(waiting == line.len(), "{waiting} wait, not {}", line.len());
    }
    unlock(held).await
}

async fn who_wants_many_is_not_passed_by_who_wants_few(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let (one, other) = (
        f.gets(&a.semaphore("n", 3)).await?,
        f.gets(&b.semaphore("n", 3)).await?,
    );
    let many = wants(&f, &a, &a.semaphore("n", 3), 3).await?;
    // One is free, and is kept for whoever wants all three.
    let few = wants(&f, &a, &b.semaphore("n", 3), 1).await?;
    ensure!(few.waits().await, "1 permit was taken past who wants 3");
    unlock(one).await?;
    ensure!(few.waits().await, "1 permit was taken past who wants 3");
    ensure!(many.waits().await, "4 of 3 permits");
    unlock(other).await?;
    let many = many.served().await?;
    ensure!(few.waits().await, "4 of 3 permits");
    unlock(many).await?;
    unlock(few.served().await?).await
}

async fn a_try_does_not_pass_those_who_wait(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let held = f.gets(&a.semaphore("n", 3).permits(2)).await?;
    let many = wants(&f, &a, &b.semaphore("n", 3), 2).await?;
    for client in [&a, &b] {
        let tried = client.semaphore("n", 3).try_acquire().await?;
        ensure!(tried.is_none(), "a try went past somebody in line");
    }
    let waiters = a.inspect(&semaphore("n")?).await?.waiters;
    ensure!(
        waiters.len() == 1,
        "a try took a place in line: {waiters:?}"
    );
    unlock(held).await?;
    unlock(many.served().await?).await
}

async fn a_release_lets_in_as_many_as_fit(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let held = f.gets(&a.semaphore("n", 4).permits(4)).await?;
    let mut line = Vec::new();
    for count in [1, 2, 1, 1] {
        line.push(wants(&f, &a, &b.semaphore("n", 4), count).await?);
    }
    let last = line.pop().ok_or_else(|| Failure::new("nobody waits"))?;
    unlock(held).await?;
    let mut guards = Vec::new();
    for next in line {
        guards.push(next.served().await?);
    }
    let out = taken(&a.inspect(&semaphore("n")?).await?);
    ensure!(out == 4, "{out} of 4 permits are out");
    ensure!(last.waits().await, "a fifth of 4 permits");
    drop(guards.pop());
    unlock(last.served().await?).await
}

async fn who_gives_up_waiting_for_many_lets_the_others_in_at_once(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let held = f.gets(&a.semaphore("n", 3).permits(2)).await?;
    let many = wants(&f, &a, &b.semaphore("n", 3), 3).await?;
    let few = wants(&f, &a, &b.semaphore("n", 3), 1).await?;
    many.drop_call().await;
    unlock(few.served().await?).await?;
    let many = b.semaphore("n", 3).wait(Duration::from_millis(300));
    let many = wants(&f, &a, &many, 3).await?;
    let few = wants(&f, &a, &a.semaphore("n", 3), 1).await?;
    refused(many.answer().await?, ErrorKind::Timeout, "5 of 3 permits")?;
    unlock(few.served().await?).await?;
    unlock(held).await
}

async fn a_wait_for_permits_that_runs_out_leaves_no_place_in_line(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let held = f.gets(&a.semaphore("n", 2).permits(2)).await?;
    for wait in [Duration::ZERO, Duration::from_millis(50)] {
        let answer = b.semaphore("n", 2).wait(wait).acquire().await;
        refused(answer, ErrorKind::Timeout, "a third of 2 permits")?;
    }
    f.until_of(&a, &semaphore("n")?, "without waiters", |s| {
        s.waiters.is_empty()
    })
    .await?;
    unlock(held).await?;
    available(&a, "n", 2, 2).await
}

async fn permits_have_rising_fences(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let mut guards = Vec::new();
    for client in [&a, &b, &a, &b] {
        guards.push(f.gets(&client.semaphore("n", 4)).await?);
    }
    let fences: Vec<_> = guards.iter().map(Guard::fence).collect();
    ensure!(fences.is_sorted_by(|a, b| a < b), "{fences:?}");
    drop(guards);
    let next = f.passes(&b.semaphore("n", 4).permits(4)).await?;
    ensure!(Some(&next) > fences.last(), "{next} after {fences:?}");
    Ok(())
}
