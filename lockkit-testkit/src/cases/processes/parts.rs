//! Other processes that have a part in something: one of the readers, some of the permits.

use std::sync::Arc;
use std::time::Duration;

use lockkit_core::Primitive;
use tokio::time::timeout;

use super::{after_crash, killed};
use crate::cases::topic;
use crate::failure::ensure;
use crate::fixture::{mutex, resource, unlock};
use crate::{Fixture, Outcome};

topic! { "processes":
    a_killed_reader_frees_its_part_and_no_other [Processes, ReadWrite],
    a_killed_writer_lets_the_readers_in [Processes, ReadWrite],
    a_killed_writer_in_line_lets_the_readers_behind_it_in [Processes, ReadWrite],
    the_permits_of_a_killed_process_come_back_and_no_others [Processes, Semaphore],
    the_segment_of_a_killed_process_is_free [Processes, Segmented],
    a_participant_that_is_killed_before_it_counts_has_not_counted [Processes, Latch],
    a_latch_that_opens_wakes_another_process [Processes, Latch],
    a_holder_in_another_process_is_asked_to_let_go [Processes, Revocation],
}

async fn a_killed_reader_frees_its_part_and_no_other(f: Arc<Fixture>) -> Outcome {
    let client = f.client().await?;
    let (lease, bound) = after_crash(&f);
    let (mut victim, mut other) = (f.peer().await?, f.peer().await?);
    for child in [&mut victim, &mut other] {
        let read = child.take("read", "n", lease, f.soon()).await?;
        ensure!(read.is_some(), "a reader is in the way of a reader");
    }
    killed(&f, victim).await?;
    let n = resource(Primitive::ReadWrite, "n")?;
    let one = |s: &lockkit_core::Snapshot| s.holders.len() == 1;
    let gone = f.until_of(&client, &n, "one reader", one);
    timeout(bound, gone).await??;
    let tried = client.read_write("n").write().try_lock().await?;
    ensure!(tried.is_none(), "the other reader was freed as well");
    ensure!(other.ask("unlock n").await? == "clean", "it lost its part");
    f.passes(&client.read_write("n").write()).await?;
    other.close().await
}

async fn a_killed_writer_lets_the_readers_in(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let (lease, bound) = after_crash(&f);
    let mut child = f.peer().await?;
    let fence = child.take("write", "n", lease, f.soon()).await?;
    let n = resource(Primitive::ReadWrite, "n")?;
    let mut line = Vec::new();
    for client in [&a, &b] {
        let read = client.read_write("n").read();
        line.push((f.queues(&a, &n, async move { read.lock().await })).await?);
    }
    killed(&f, child).await?;
    for reader in line {
        let reader = timeout(bound, reader.served()).await??;
        ensure!(Some(reader.fence()) >= fence, "a fence fell");
        unlock(reader).await?;
    }
    Ok(())
}

async fn a_killed_writer_in_line_lets_the_readers_behind_it_in(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let (lease, bound) = after_crash(&f);
    let first = f.gets(&a.read_write("n").read()).await?;
    let mut child = f.peer().await?;
    let n = resource(Primitive::ReadWrite, "n")?;
    child.begin("write", "n", lease, f.long()).await?;
    f.until_of(&a, &n, "one waiter", |s| s.waiters.len() == 1)
        .await?;
    let read = b.read_write("n").read();
    let behind = (f.queues(&a, &n, async move { read.lock().await })).await?;
    killed(&f, child).await?;
    unlock(timeout(bound, behind.served()).await??).await?;
    ensure!(first.is_held(), "the first reader was lost");
    unlock(first).await
}

async fn the_permits_of_a_killed_process_come_back_and_no_others(f: Arc<Fixture>) -> Outcome {
    let client = f.client().await?;
    let (lease, bound) = after_crash(&f);
    let (mut victim, mut other) = (f.peer().await?, f.peer().await?);
    let two = victim.take("permits:2:4", "n", lease, f.soon()).await?;
    let one = other.take("permits:1:4", "n", lease, f.soon()).await?;
    ensure!(two.is_some() && one.is_some(), "3 of 4 permits");
    let lock = client.semaphore("n", 4);
    ensure!(lock.try_acquire_many(2).await?.is_none(), "5 of 4 permits");
    killed(&f, victim).await?;
    let three = timeout(bound, lock.acquire_many(3)).await??;
    ensure!(lock.try_acquire().await?.is_none(), "5 of 4 permits");
    ensure!(
        other.ask("unlock n").await? == "clean",
        "it lost its permit"
    );
    unlock(f.is_done(lock.acquire()).await?).await?;
    unlock(three).await?;
    other.close().await
}

async fn the_segment_of_a_killed_process_is_free(f: Arc<Fixture>) -> Outcome {
    let client = f.client().await?;
    let (lease, bound) = after_crash(&f);
    let mine = f.gets(&client.segmented("n", 2)).await?;
    let mut child = f.peer().await?;
    let other = child.take("any:2", "n", lease, f.soon()).await?;
    ensure!(other.is_some(), "a segment is free");
    let lock = client.segmented("n", 2);
    ensure!(lock.try_lock_any().await?.is_none(), "a third of 2");
    killed(&f, child).await?;
    let next = timeout(bound, lock.lock_any()).await??;
    ensure!(
        next.segment() != mine.segment(),
        "a segment has two holders"
    );
    unlock(next).await?;
    unlock(mine).await
}

async fn a_participant_that_is_killed_before_it_counts_has_not_counted(f: Arc<Fixture>) -> Outcome {
    let client = f.client().await?;
    ensure!(client.latch("n").try_set(3).await?, "not set");
    let (mut one, other) = (f.peer().await?, f.peer().await?);
    ensure!(one.ask("down n one").await? == "2", "not counted");
    for child in [one, other] {
        killed(&f, child).await?;
    }
    // What was counted stays counted.
    tokio::time::sleep(f.lease() + Duration::from_millis(50)).await;
    let left = client.latch("n").count().await?;
    ensure!(left == Some(2), "{left:?} of 3 are left after one came");
    for participant in ["other", "third"] {
        client.latch("n").count_down(participant).await?;
    }
    client.latch("n").wait_at_most(Duration::ZERO).await?;
    Ok(())
}

async fn a_latch_that_opens_wakes_another_process(f: Arc<Fixture>) -> Outcome {
    let client = f.client().await?;
    ensure!(client.latch("n").try_set(1).await?, "not set");
    let mut child = f.peer().await?;
    child.tell("pass n").await?;
    let n = resource(Primitive::Latch, "n")?;
    f.until_of(&client, &n, "one waiter", |s| s.waiters.len() == 1)
        .await?;
    client.latch("n").count_down("x").await?;
    let answer = child.answer(Duration::ZERO).await?;
    ensure!(answer == "passed", "{answer}");
    child.close().await
}

async fn a_holder_in_another_process_is_asked_to_let_go(f: Arc<Fixture>) -> Outcome {
    let client = f.client().await?;
    let mut child = f.peer().await?;
    let fence = child.lock("n", f.long(), f.soon()).await?;
    ensure!(fence.is_some(), "the name was busy");
    let lock = client.mutex("n");
    let waiting = (f.queues(&client, &mutex("n")?, async move { lock.lock().await })).await?;
    child.tell("asked n").await?;
    let count = client.request_release(&mutex("n")?).await?;
    ensure!(count == 1, "{count} of 1 holder were asked");
    let answer = child.answer(Duration::ZERO).await?;
    ensure!(answer == "asked", "{answer}");
    ensure!(waiting.waits().await, "asking took the lock away");
    ensure!(child.ask("unlock n").await? == "clean", "the child lost it");
    unlock(waiting.served().await?).await?;
    child.close().await
}
