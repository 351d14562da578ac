//! The limit that is stored with the name.

use std::sync::Arc;

use lockkit_core::ErrorKind;

use super::{available, refused, semaphore};
use crate::cases::topic;
use crate::failure::ensure;
use crate::fixture::unlock;
use crate::{Failure, Fixture, Outcome};

topic! { "semaphore":
    another_limit_than_that_of_the_name_is_refused [Semaphore],
    a_limit_is_remembered_while_nobody_holds_a_permit [Semaphore],
    a_limit_is_that_of_one_name_only [Semaphore],
    a_greater_limit_lets_those_who_wait_in [Semaphore],
    a_smaller_limit_takes_nothing_away_and_lets_nobody_in [Semaphore],
    who_waits_for_more_than_the_new_limit_is_told_and_frees_the_line [Semaphore],
    a_limit_can_be_set_before_anybody_comes [Semaphore],
    what_no_limit_allows_is_refused_before_any_request [Semaphore],
}

async fn another_limit_than_that_of_the_name_is_refused(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let held = f.gets(&a.semaphore("n", 3)).await?;
    for client in [&a, &b] {
        for limit in [2, 4] {
            let other = client.semaphore("n", limit);
            let what = "another limit";
            refused(other.try_acquire().await, ErrorKind::ConfigMismatch, what)?;
            refused(
                f.is_done(async move { Ok(other.acquire().await) }).await?,
                ErrorKind::ConfigMismatch,
                what,
            )?;
        }
    }
    ensure!(held.is_held(), "lost by a mismatch");
    let snapshot = b.inspect(&semaphore("n")?).await?;
    ensure!(snapshot.size == Some(3), "{:?} stored", snapshot.size);
    ensure!(
        snapshot.holders.len() == 1 && snapshot.waiters.is_empty(),
        "a mismatch left something: {snapshot:?}"
    );
    unlock(held).await
}

async fn a_limit_is_remembered_while_nobody_holds_a_permit(f: Arc<Fixture>) -> Outcome {
    let a = f.loose_client().await?;
    f.passes(&a.semaphore("n", 3)).await?;
    a.close().await?;
    let b = f.client().await?;
    let other = b.semaphore("n", 4).try_acquire().await;
    refused(other, ErrorKind::ConfigMismatch, "another limit")?;
    available(&b, "n", 3, 3).await
}

async fn a_limit_is_that_of_one_name_only(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let one = f.gets(&a.semaphore("n", 1)).await?;
    let other = f.gets(&b.semaphore("n/2", 2).permits(2)).await?;
    available(&b, "n", 1, 0).await?;
    available(&a, "n/2", 2, 0).await?;
    unlock(one).await?;
    unlock(other).await
}

async fn a_greater_limit_lets_those_who_wait_in(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let held = f.gets(&a.semaphore("n", 1)).await?;
    let mut line = Vec::new();
    for _ in 0..3 {
        let lock = b.semaphore("n", 1);
        line.push((f.queues(&a, &semaphore("n")?, async move { lock.acquire().await })).await?);
    }
    let last = line.pop().ok_or_else(|| Failure::new("nobody waits"))?;
    let lock = a.semaphore("n", 1).set_limit(3).await?;
    ensure!(lock.limit() == 3, "a limit of {}", lock.limit());
    let mut guards = vec![held];
    for next in line {
        guards.push(next.served().await?);
    }
    ensure!(last.waits().await, "a fourth of 3 permits");
    drop(guards.pop());
    guards.push(last.served().await?);
    let old = b.semaphore("n", 1).try_acquire().await;
    refused(old, ErrorKind::ConfigMismatch, "the old limit")?;
    available(&b, "n", 3, 0).await?;
    for guard in guards {
        unlock(guard).await?;
    }
    available(&b, "n", 3, 3).await
}

async fn a_smaller_limit_takes_nothing_away_and_lets_nobody_in(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let mut guards = Vec::new();
    for client in [&a, &b, &a] {
        guards.push(f.gets(&client.semaphore("n", 3)).await?);
    }
    let lock = b.semaphore("n", 3);
    let waiting = (f.queues(&a, &semaphore("n")?, async move { lock.acquire().await })).await?;
    let _ = b.semaphore("n", 3).set_limit(1).await?;
    ensure!(
        guards.iter().all(|g| g.is_held()),
        "a permit was taken away"
    );
    let free = b.semaphore("n", 1).available().await?;
    ensure!(free == 0, "{free} permits are free");
    for _ in 0..2 {
        drop(guards.pop());
        ensure!(waiting.waits().await, "entered before enough came back");
    }
    for guard in guards {
        unlock(guard).await?;
    }
    unlock(waiting.served().await?).await?;
    available(&a, "n", 1, 1).await
}

async fn who_waits_for_more_than_the_new_limit_is_told_and_frees_the_line(
    f: Arc<Fixture>,
) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let held = f.gets(&a.semaphore("n", 3)).await?;
    let (many, few) = (b.semaphore("n", 3), b.semaphore("n", 3));
    let n = semaphore("n")?;
    let many = (f.queues(&a, &n, async move { many.acquire_many(3).await })).await?;
    let few = (f.queues(&a, &n, async move { few.acquire().await })).await?;
    let _ = a.semaphore("n", 3).set_limit(2).await?;
    let what = "3 of 2 permits";
    refused(many.answer().await?, ErrorKind::ConfigMismatch, what)?;
    unlock(few.served().await?).await?;
    unlock(held).await?;
    available(&b, "n", 2, 2).await
}

async fn a_limit_can_be_set_before_anybody_comes(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let _ = a.semaphore("n", 1).set_limit(2).await?;
    let first = b.semaphore("n", 1).try_acquire().await;
    refused(first, ErrorKind::ConfigMismatch, "another limit")?;
    available(&b, "n", 2, 2).await
}

async fn what_no_limit_allows_is_refused_before_any_request(f: Arc<Fixture>) -> Outcome {
    let client = f.client().await?;
    let before = client.wire().requests();
    let (lock, none) = (client.semaphore("n", 3), client.semaphore("n", 0));
    let answers = [
        lock.acquire_many(0).await.err(),
        lock.acquire_many(4).await.err(),
        lock.try_acquire_many(0).await.err(),
        lock.try_acquire_many(4).await.err(),
        none.acquire().await.err(),
        none.try_acquire().await.err(),
        lock.set_limit(0).await.err(),
    ];
    for (number, answer) in answers.into_iter().enumerate() {
        let kind = answer.map(|error| error.kind());
        ensure!(
            kind == Some(ErrorKind::InvalidArgument),
            "call {number}: {kind:?}"
        );
    }
    let requests = client.wire().requests() - before;
    ensure!(requests == 0, "{requests} requests");
    Ok(())
}
