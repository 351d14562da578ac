//! Taking the segment of a key.

use std::sync::Arc;

use lockkit_core::{ErrorKind, SegmentedLock};

use super::segmented;
use crate::cases::topic;
use crate::failure::ensure;
use crate::fixture::unlock;
use crate::{Failure, Fixture, Outcome};

topic! { "segmented":
    a_key_has_the_same_segment_everywhere [Segmented],
    keys_of_one_segment_exclude_each_other_and_others_do_not [Segmented],
    who_waits_for_a_key_is_served_when_its_segment_is_free [Segmented],
    who_waits_for_a_key_is_passed_by_who_wants_another_segment [Segmented],
    a_segment_that_somebody_waits_for_is_not_taken_by_who_comes_later [Segmented],
    a_segment_that_does_not_exist_is_refused_before_any_request [Segmented],
}

/// Keys of segment 0, 0, 1.
fn keys(lock: &SegmentedLock) -> Outcome<[String; 3]> {
    let of = |segment: u32, other_than: &str| {
        (0..1000)
            .map(|number| format!("key {number}"))
            .find(|key| lock.segment_of(key) == segment && key != other_than)
            .ok_or_else(|| Failure::new(format!("no key of segment {segment}")))
    };
    let first = of(0, "")?;
    Ok([first.clone(), of(0, &first)?, of(1, "")?])
}

async fn a_key_has_the_same_segment_everywhere(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    for key in ["", "alice", "bob", "orders/42"] {
        let segment = a.segmented("n", 7).segment_of(key);
        ensure!(segment < 7, "segment {segment} of 7");
        for client in [&a, &b] {
            let guard = f.is_done(client.segmented("n", 7).lock_key(key)).await?;
            ensure!(
                guard.segment() == Some(segment),
                "{:?} instead of {segment}",
                guard.segment()
            );
            unlock(guard).await?;
        }
    }
    Ok(())
}

async fn keys_of_one_segment_exclude_each_other_and_others_do_not(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let (one, other) = (a.segmented("n", 2), b.segmented("n", 2));
    let [first, second, elsewhere] = keys(&one)?;
    let guard = f.is_done(one.lock_key(&first)).await?;
    for lock in [&one, &other] {
        for key in [&first, &second] {
            let tried = lock.try_lock_key(key).await?;
            ensure!(tried.is_none(), "a segment has two holders");
        }
    }
    unlock(f.is_done(other.lock_key(&elsewhere)).await?).await?;
    unlock(guard).await?;
    unlock(f.is_done(other.lock_key(&second)).await?).await
}

async fn who_waits_for_a_key_is_served_when_its_segment_is_free(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let (one, other) = (a.segmented("n", 2), b.segmented("n", 2));
    let [first, second, elsewhere] = keys(&one)?;
    let mine = f.is_done(one.lock_key(&first)).await?;
    let theirs = f.is_done(other.lock_key(&elsewhere)).await?;
    let lock = other.clone();
    let waiting = (f.queues(
        &a,
        &segmented("n")?,
        async move { lock.lock_key(second).await },
    ))
    .await?;
    unlock(theirs).await?;
    ensure!(waiting.waits().await, "served with another segment");
    unlock(mine).await?;
    let next = waiting.served().await?;
    ensure!(next.segment() == Some(0), "{:?}", next.segment());
    unlock(next).await
}

async fn who_waits_for_a_key_is_passed_by_who_wants_another_segment(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let lock = a.segmented("n", 3);
    let held = f.is_done(lock.lock_segment(0)).await?;
    let other = b.segmented("n", 3);
    let key = (f.queues(
        &a,
        &segmented("n")?,
        async move { other.lock_segment(0).await },
    ))
    .await?;
    // Newcomers, and somebody in line behind it.
    let any = f.gets(&a.segmented("n", 3)).await?;
    ensure!(any.segment() != Some(0), "a segment has two holders");
    let last = f.gets(&b.segmented("n", 3)).await?;
    ensure!(last.segment() != Some(0), "a segment has two holders");
    let behind = b.segmented("n", 3);
    let behind = (f.queues(&a, &segmented("n")?, async move { behind.lock_any().await })).await?;
    let freed = any.segment();
    unlock(any).await?;
    let behind = behind.served().await?;
    ensure!(behind.segment() == freed, "{:?}", behind.segment());
    ensure!(key.waits().await, "a segment has two holders");
    unlock(held).await?;
    let key = key.served().await?;
    ensure!(key.segment() == Some(0), "{:?}", key.segment());
    for guard in [key, behind, last] {
        unlock(guard).await?;
    }
    Ok(())
}

async fn a_segment_that_somebody_waits_for_is_not_taken_by_who_comes_later(
    f: Arc<Fixture>,
) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let zero = f.is_done(a.segmented("n", 2).lock_segment(0)).await?;
    let one = f.is_done(a.segmented("n", 2).lock_segment(1)).await?;
    let n = segmented("n")?;
    let key = b.segmented("n", 2);
    let key = (f.queues(&a, &n, async move { key.lock_segment(0).await })).await?;
    let any = b.segmented("n", 2);
    let any = (f.queues(&a, &n, async move { any.lock_any().await })).await?;
    let same = b.segmented("n", 2);
    let same = (f.queues(&a, &n, async move { same.lock_segment(0).await })).await?;
    unlock(zero).await?;
    let key = key.served().await?;
    ensure!(any.waits().await, "a segment has two holders");
    unlock(one).await?;
    let any = any.served().await?;
    ensure!(any.segment() == Some(1), "{:?}", any.segment());
    ensure!(same.waits().await, "a segment has two holders");
    unlock(key).await?;
    unlock(same.served().await?).await?;
    unlock(any).await
}

async fn a_segment_that_does_not_exist_is_refused_before_any_request(f: Arc<Fixture>) -> Outcome {
    let client = f.client().await?;
    let before = client.wire().requests();
    let (lock, none) = (client.segmented("n", 3), client.segmented("n", 0));
    let answers = [
        lock.lock_segment(3).await.err(),
        lock.try_lock_segment(u32::MAX).await.err(),
        none.lock_any().await.err(),
        none.lock_key("k").await.err(),
        lock.set_segments(0).await.err(),
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
