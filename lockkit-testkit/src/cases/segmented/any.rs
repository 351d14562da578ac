//! Taking any segment.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lockkit_core::{ErrorKind, Guard};
use tokio::time::timeout;

use super::segmented;
use crate::cases::topic;
use crate::failure::ensure;
use crate::fixture::unlock;
use crate::{Fixture, Outcome};

topic! { "segmented":
    each_segment_has_one_holder [Segmented],
    any_free_segment_is_taken_the_one_held_last_first [Segmented],
    who_waits_for_any_segment_gets_the_first_that_is_freed [Segmented],
    those_who_wait_for_any_segment_are_served_in_order [Segmented],
    a_segment_that_runs_out_is_free [Segmented],
    a_wait_for_a_segment_that_runs_out_leaves_no_place_in_line [Segmented],
    segments_have_rising_fences [Segmented, Fences],
}

fn segments(guards: &[Guard]) -> BTreeSet<Option<u32>> {
    guards.iter().map(Guard::segment).collect()
}

async fn each_segment_has_one_holder(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let mut guards = Vec::new();
    for client in [&a, &b, &b] {
        guards.push(f.gets(&client.segmented("n", 3)).await?);
    }
    let held = segments(&guards);
    let all = BTreeSet::from([Some(0), Some(1), Some(2)]);
    ensure!(held == all, "the segments {held:?} are held");
    for client in [&a, &b] {
        let lock = client.segmented("n", 3);
        ensure!(lock.try_lock_any().await?.is_none(), "a fourth of 3");
        for segment in 0..3 {
            let tried = lock.try_lock_segment(segment).await?;
            ensure!(tried.is_none(), "segment {segment} has two holders");
        }
    }
    let waiters = a.inspect(&segmented("n")?).await?.waiters;
    ensure!(waiters.is_empty(), "a try took a place: {waiters:?}");
    for guard in guards {
        ensure!(guard.is_held(), "a segment was lost");
        unlock(guard).await?;
    }
    Ok(())
}

async fn any_free_segment_is_taken_the_one_held_last_first(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let (one, other) = (a.segmented("n", 4), b.segmented("n", 4));
    let first = f.is_done(one.lock_segment(2)).await?;
    let theirs = f.gets(&other).await?;
    let last = theirs.segment();
    ensure!(last != Some(2), "segment 2 has two holders");
    unlock(first).await?;
    for _ in 0..3 {
        let again = f.gets(&one).await?;
        ensure!(
            again.segment() == Some(2),
            "{:?} instead of the one held last",
            again.segment()
        );
        unlock(again).await?;
    }
    unlock(theirs).await?;
    // If somebody else has it by now, another will do.
    let taken = f.is_done(b.segmented("n", 4).lock_segment(2)).await?;
    let next = f.gets(&one).await?;
    ensure!(next.segment() != Some(2), "segment 2 has two holders");
    unlock(taken).await?;
    unlock(next).await
}

async fn who_waits_for_any_segment_gets_the_first_that_is_freed(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    for freed in 0..3_usize {
        let mut guards = Vec::new();
        for segment in 0..3 {
            guards.push(f.is_done(a.segmented("n", 3).lock_segment(segment)).await?);
        }
        let lock = b.segmented("n", 3);
        let waiting =
            (f.queues(&a, &segmented("n")?, async move { lock.lock_any().await })).await?;
        ensure!(waiting.waits().await, "a fourth of 3");
        let segment = guards[freed].segment();
        unlock(guards.swap_remove(freed)).await?;
        let next = waiting.served().await?;
        ensure!(
            next.segment() == segment,
            "{:?} while {segment:?} is free",
            next.segment()
        );
        unlock(next).await?;
        for guard in guards {
            unlock(guard).await?;
        }
    }
    Ok(())
}

async fn those_who_wait_for_any_segment_are_served_in_order(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let mut held = f.gets(&a.segmented("n", 2)).await?;
    let stays = f.gets(&a.segmented("n", 2)).await?;
    let mut line = Vec::new();
    for number in 0..4 {
        let lock = if number % 2 == 0 { &b } else { &a }.segmented("n", 2);
        line.push((f.queues(&a, &segmented("n")?, async move { lock.lock_any().await })).await?);
    }
    let mut line = line.into_iter();
    while let Some(next) = line.next() {
        unlock(held).await?;
        held = next.served().await?;
        let waiting = a.inspect(&segmented("n")?).await?.waiters.len();
        ensure!(waiting == line.len(), "{waiting} wait, not {}", line.len());
    }
    unlock(held).await?;
    unlock(stays).await
}

async fn a_segment_that_runs_out_is_free(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let brief = a.segmented("n", 2).ttl(f.lease()).without_watchdog();
    let brief = f.gets(&brief).await?;
    let stays = f.gets(&b.segmented("n", 2)).await?;
    let lock = b.segmented("n", 2);
    let next = timeout(f.lease() * 2 + f.soon(), lock.lock_any()).await??;
    ensure!(!brief.is_held(), "a segment has two holders");
    ensure!(next.segment() == brief.segment(), "another segment");
    ensure!(stays.is_held(), "the neighbour was lost");
    unlock(next).await?;
    unlock(stays).await
}

async fn a_wait_for_a_segment_that_runs_out_leaves_no_place_in_line(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let held = f.gets(&a.segmented("n", 1)).await?;
    let lock = b.segmented("n", 1).wait(Duration::from_millis(50));
    for answer in [lock.lock_any().await, lock.lock_key("k").await] {
        ensure!(
            answer.is_err_and(|e| e.kind() == ErrorKind::Timeout),
            "a segment has two holders"
        );
    }
    f.until_of(&a, &segmented("n")?, "without waiters", |s| {
        s.waiters.is_empty()
    })
    .await?;
    unlock(held).await
}

async fn segments_have_rising_fences(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let mut last = None;
    for round in 0..3 {
        let mut guards = Vec::new();
        for client in [&a, &b, &a] {
            let guard = f.gets(&client.segmented("n", 3)).await?;
            ensure!(
                Some(guard.fence()) > last,
                "round {round}: {} after {last:?}",
                guard.fence()
            );
            last = Some(guard.fence());
            guards.push(guard);
        }
        for guard in guards {
            unlock(guard).await?;
        }
    }
    Ok(())
}
