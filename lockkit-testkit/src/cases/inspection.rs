//! What operators see, and take away.

use std::sync::Arc;

use lockkit_core::{DistributedLock, Guard, Mode, Pick, Primitive, Released};
use tokio::time::timeout;

use super::topic;
use crate::failure::ensure;
use crate::fixture::{mutex, resource, unlock};
use crate::{Client, Fixture, Outcome};

topic! { "inspection":
    a_snapshot_shows_how_each_holds_and_how_each_wants_to [ReadWrite],
    a_snapshot_shows_permits_and_segments_and_how_many_there_are [Semaphore, Segmented],
    a_snapshot_shows_the_count_of_a_latch_and_who_waits_for_it [Latch],
    those_who_wait_are_shown_in_the_order_of_the_service [Line],
    a_list_is_ordered_by_kind_and_name [ReadWrite, Semaphore, Segmented, Latch],
    evicting_one_reader_leaves_the_others [ReadWrite],
    evicting_one_permit_leaves_the_others [Semaphore],
    evicting_one_segment_leaves_the_others [Segmented],
    evicting_who_waits_lets_those_behind_it_in [ReadWrite],
}

async fn a_snapshot_shows_how_each_holds_and_how_each_wants_to(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let rw = resource(Primitive::ReadWrite, "n")?;
    let last = f.passes(&a.read_write("n").write()).await?;
    let one = f.gets(&a.read_write("n").label("one").read()).await?;
    let other = f.gets(&b.read_write("n").label("other").read()).await?;
    let writer = b.read_write("n").label("writer").write();
    let writer = (f.queues(&a, &rw, async move { writer.lock().await })).await?;
    let behind = a.read_write("n").label("behind").read();
    let behind = (f.queues(&a, &rw, async move { behind.lock().await })).await?;
    for client in [&a, &b] {
        let snapshot = client.inspect(&rw).await?;
        ensure!(snapshot.resource == rw, "another resource: {snapshot:?}");
        let holders = snapshot.holders.iter();
        let mut held: Vec<_> = holders
            .map(|h| (h.label.text().to_owned(), h.id.clone(), h.mode, h.fence))
            .collect();
        held.sort_by(|a, b| a.0.cmp(&b.0));
        let expected = [
            (
                "one".to_owned(),
                one.id().clone(),
                Mode::Shared,
                one.fence(),
            ),
            (
                "other".to_owned(),
                other.id().clone(),
                Mode::Shared,
                other.fence(),
            ),
        ];
        ensure!(held == expected, "{held:?} instead of {expected:?}");
        for holder in &snapshot.holders {
            ensure!(
                holder.remaining > f.long() / 2 && holder.remaining <= f.long(),
                "{:?} remain",
                holder.remaining
            );
            ensure!(holder.label.pid() == std::process::id(), "{holder:?}");
        }
        let waiting: Vec<_> = snapshot
            .waiters
            .iter()
            .map(|w| (w.label.text(), w.mode))
            .collect();
        let expected = [("writer", Mode::Exclusive), ("behind", Mode::Shared)];
        ensure!(waiting == expected, "{waiting:?}");
        ensure!(
            f.harness().descriptor().fence == lockkit_core::FenceClass::None
                || snapshot.fence == Some(last),
            "{:?} is the last fence, not {last}",
            snapshot.fence
        );
    }
    unlock(one).await?;
    unlock(other).await?;
    unlock(writer.served().await?).await?;
    unlock(behind.served().await?).await
}

async fn a_snapshot_shows_permits_and_segments_and_how_many_there_are(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let permits = f.gets(&a.semaphore("n", 5).permits(3)).await?;
    let snapshot = b.inspect(&resource(Primitive::Semaphore, "n")?).await?;
    let modes: Vec<Mode> = snapshot.holders.iter().map(|h| h.mode).collect();
    ensure!(modes == [Mode::Permits { count: 3, limit: 5 }], "{modes:?}");
    ensure!(snapshot.size == Some(5), "{:?} permits", snapshot.size);
    unlock(permits).await?;

    let segment = f.is_done(a.segmented("n", 4).lock_segment(2)).await?;
    let snapshot = b.inspect(&resource(Primitive::Segmented, "n")?).await?;
    let modes: Vec<Mode> = snapshot.holders.iter().map(|h| h.mode).collect();
    let pick = Pick::Only(2);
    ensure!(modes == [Mode::Segment { pick, of: 4 }], "{modes:?}");
    ensure!(snapshot.size == Some(4), "{:?} segments", snapshot.size);
    unlock(segment).await
}

async fn a_snapshot_shows_the_count_of_a_latch_and_who_waits_for_it(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let latch = resource(Primitive::Latch, "n")?;
    a.latch("n").try_set(3).await?;
    a.latch("n").count_down("x").await?;
    let lock = a.latch("n").label("waits");
    let waiting = (f.queues(&a, &latch, async move { lock.wait().await })).await?;
    let snapshot = b.inspect(&latch).await?;
    let state = snapshot.latch.map(|latch| (latch.left, latch.of));
    ensure!(state == Some((2, 3)), "{state:?} left and in all");
    ensure!(!snapshot.is_idle(), "a latch that is counted is not idle");
    let labels: Vec<&str> = snapshot.waiters.iter().map(|w| w.label.text()).collect();
    ensure!(labels == ["waits"], "{labels:?}");
    let listed = b.list("").await?;
    ensure!(listed.len() == 1, "{listed:?}");
    for participant in ["y", "z"] {
        b.latch("n").count_down(participant).await?;
    }
    waiting.served().await?;
    let listed = b.list("").await?;
    ensure!(listed.is_empty(), "an open latch is idle: {listed:?}");
    Ok(())
}

async fn those_who_wait_are_shown_in_the_order_of_the_service(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let guard = f.gets(&a.mutex("n")).await?;
    let mut line = Vec::new();
    for number in 0..6 {
        let client = if number % 2 == 0 { &a } else { &b };
        let lock = client.mutex("n").label(format!("{number}"));
        line.push((f.queues(&a, &mutex("n")?, async move { lock.lock().await })).await?);
    }
    for client in [&a, &b, &f.client().await?] {
        let waiters = client.inspect(&mutex("n")?).await?.waiters;
        let order: Vec<&str> = waiters.iter().map(|w| w.label.text()).collect();
        ensure!(order == ["0", "1", "2", "3", "4", "5"], "{order:?}");
    }
    for waiting in line {
        waiting.drop_call().await;
    }
    unlock(guard).await
}

async fn a_list_is_ordered_by_kind_and_name(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let mut guards: Vec<Guard> = Vec::new();
    for name in ["b/2", "a", "b/1", "b"] {
        let locks: [Box<dyn DistributedLock>; 4] = [
            Box::new(a.semaphore(name, 2)),
            Box::new(b.mutex(name)),
            Box::new(a.segmented(name, 2)),
            Box::new(b.read_write(name).read()),
        ];
        for lock in locks {
            guards.push(lock.lock().await?);
        }
        a.latch(name).try_set(1).await?;
    }
    for (prefix, names) in [("", 4), ("b", 3), ("b/", 2), ("c", 0)] {
        let list = b.list(prefix).await?;
        let found: Vec<_> = list.iter().map(|snapshot| &snapshot.resource).collect();
        ensure!(
            found.is_sorted() && found.len() == names * Primitive::ALL.len(),
            "{prefix:?}: {found:?}"
        );
        let matches = found.iter().all(|r| r.name().as_str().starts_with(prefix));
        ensure!(matches, "{prefix:?}: {found:?}");
    }
    for guard in guards {
        unlock(guard).await?;
    }
    for name in ["b/2", "a", "b/1", "b"] {
        a.latch(name).count_down("x").await?;
    }
    let list = b.list("").await?;
    ensure!(list.is_empty(), "nobody holds or waits: {list:?}");
    Ok(())
}

/// Evicts the middle one of three: its guard is lost, and nothing of the others.
async fn evicts(f: &Fixture, client: &Client, guards: [Guard; 3]) -> Outcome {
    let [first, victim, last] = guards;
    let (id, n) = (victim.id().clone(), victim.id().resource().clone());
    let done = client.evict(&id).await?;
    ensure!(done == Released::Done, "there was nothing to evict");
    let holders = client.inspect(&n).await?.holders;
    let is_left = |guard: &Guard| holders.iter().any(|holder| holder.id == *guard.id());
    ensure!(
        holders.len() == 2 && is_left(&first) && is_left(&last),
        "{holders:?} are left"
    );
    timeout(f.lease() * 2 + f.soon(), victim.lost()).await?;
    ensure!(!victim.is_held(), "held and evicted");
    for _ in 0..2 {
        let again = client.evict(&id).await?;
        ensure!(again == Released::NotHeld, "evicted twice");
    }
    drop(victim);
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    for guard in [first, last] {
        ensure!(guard.is_held(), "another one was lost: {guard:?}");
        unlock(guard).await?;
    }
    Ok(())
}

async fn evicting_one_reader_leaves_the_others(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let guards = [
        f.gets(&a.read_write("n").ttl(f.lease()).read()).await?,
        f.gets(&b.read_write("n").ttl(f.lease()).read()).await?,
        f.gets(&b.read_write("n").ttl(f.lease()).read()).await?,
    ];
    evicts(&f, &a, guards).await?;
    f.passes(&a.read_write("n").write()).await?;
    Ok(())
}

async fn evicting_one_permit_leaves_the_others(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let guards = [
        f.gets(&a.semaphore("n", 4).ttl(f.lease())).await?,
        f.gets(&b.semaphore("n", 4).ttl(f.lease()).permits(2))
            .await?,
        f.gets(&b.semaphore("n", 4).ttl(f.lease())).await?,
    ];
    evicts(&f, &a, guards).await?;
    f.passes(&a.semaphore("n", 4).permits(4)).await?;
    Ok(())
}

async fn evicting_one_segment_leaves_the_others(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let (one, other) = (
        a.segmented("n", 3).ttl(f.lease()),
        b.segmented("n", 3).ttl(f.lease()),
    );
    let guards = [
        f.is_done(one.lock_segment(0)).await?,
        f.is_done(other.lock_segment(1)).await?,
        f.is_done(other.lock_segment(2)).await?,
    ];
    evicts(&f, &a, guards).await?;
    unlock(f.is_done(a.segmented("n", 3).lock_segment(1)).await?).await
}

async fn evicting_who_waits_lets_those_behind_it_in(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let rw = resource(Primitive::ReadWrite, "n")?;
    let reader = f.gets(&a.read_write("n").read()).await?;
    let write = b.read_write("n").write();
    let writer = (f.queues(&a, &rw, async move { write.lock().await })).await?;
    let read = b.read_write("n").read();
    let behind = (f.queues(&a, &rw, async move { read.lock().await })).await?;
    let waiters = a.inspect(&rw).await?.waiters;
    ensure!(waiters.len() == 2, "{waiters:?}");
    let done = a.evict(&waiters[0].id).await?;
    ensure!(done == Released::Done, "there was nothing to evict");
    unlock(behind.served().await?).await?;
    // Whether it asks again or gives up is for the client that waits to decide.
    writer.drop_call().await;
    ensure!(reader.is_held(), "the holder was lost");
    unlock(reader).await
}
