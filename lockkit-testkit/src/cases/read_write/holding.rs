//! Who holds beside whom.

use std::sync::Arc;

use lockkit_core::DistributedLock;
use tokio::time::timeout;

use super::rw;
use crate::cases::topic;
use crate::failure::ensure;
use crate::fixture::unlock;
use crate::{Fixture, Outcome};

topic! { "read_write":
    many_read_at_a_time [ReadWrite],
    a_reader_keeps_writers_out [ReadWrite],
    a_writer_keeps_everybody_out [ReadWrite],
    a_reader_that_runs_out_is_not_in_the_way_of_a_writer [ReadWrite],
    a_writer_that_runs_out_is_not_in_the_way_of_readers [ReadWrite],
    each_reader_is_released_by_itself [ReadWrite],
    a_name_is_another_one_as_a_mutex_and_as_a_semaphore [ReadWrite, Semaphore],
}

async fn many_read_at_a_time(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let mut guards = Vec::new();
    for client in [&a, &b, &a, &b] {
        guards.push(f.gets(&client.read_write("n").read()).await?);
    }
    let tried = b.read_write("n").read().try_lock().await?;
    ensure!(tried.is_some(), "a reader is in the way of a reader");
    let holders = a.inspect(&rw("n")?).await?.holders.len();
    ensure!(holders == 5, "{holders} readers of 5 are known");
    ensure!(guards.iter().all(|g| g.is_held()), "a reader was lost");
    Ok(())
}

async fn a_reader_keeps_writers_out(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let readers = [
        f.gets(&a.read_write("n").read()).await?,
        f.gets(&b.read_write("n").read()).await?,
    ];
    let write = b.read_write("n").write();
    let waiting = (f.queues(&a, &rw("n")?, async move { write.lock().await })).await?;
    for reader in readers {
        ensure!(waiting.waits().await, "a writer beside a reader");
        for client in [&a, &b] {
            let tried = client.read_write("n").write().try_lock().await?;
            ensure!(tried.is_none(), "a writer beside a reader");
        }
        unlock(reader).await?;
    }
    unlock(waiting.served().await?).await
}

async fn a_writer_keeps_everybody_out(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let writer = f.gets(&a.read_write("n").write()).await?;
    for client in [&a, &b] {
        let lock = client.read_write("n");
        let (read, write) = (lock.read(), lock.write());
        ensure!(read.try_lock().await?.is_none(), "a reader beside a writer");
        ensure!(write.try_lock().await?.is_none(), "two writers");
    }
    let snapshot = b.inspect(&rw("n")?).await?;
    ensure!(
        snapshot.waiters.is_empty(),
        "a try took a place in line: {snapshot:?}"
    );
    let (write, read) = (b.read_write("n").write(), b.read_write("n").read());
    let write = (f.queues(&a, &rw("n")?, async move { write.lock().await })).await?;
    let read = (f.queues(&a, &rw("n")?, async move { read.lock().await })).await?;
    ensure!(write.waits().await, "two writers");
    ensure!(read.waits().await, "a reader beside a writer");
    unlock(writer).await?;
    unlock(write.served().await?).await?;
    unlock(read.served().await?).await
}

async fn runs_out(
    f: &Fixture,
    first: impl DistributedLock + Clone,
    next: impl DistributedLock + Clone,
) -> Outcome {
    let guard = f.gets(&first).await?;
    let late = timeout(f.lease() * 2 + f.soon(), next.lock()).await??;
    ensure!(!guard.is_held(), "two believe in it");
    unlock(late).await
}

async fn a_reader_that_runs_out_is_not_in_the_way_of_a_writer(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let stays = f.gets(&b.read_write("n").read()).await?;
    let brief = a.read_write("n").ttl(f.lease()).without_watchdog().read();
    let brief = f.gets(&brief).await?;
    let write = b.read_write("n").write();
    let write = (f.queues(&a, &rw("n")?, async move { write.lock().await })).await?;
    unlock(stays).await?;
    let writer = timeout(f.lease() * 2 + f.soon(), write.served()).await??;
    ensure!(!brief.is_held(), "two believe in it");
    unlock(writer).await
}

async fn a_writer_that_runs_out_is_not_in_the_way_of_readers(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let brief = a.read_write("n").ttl(f.lease()).without_watchdog().write();
    runs_out(&f, brief, b.read_write("n").read()).await
}

async fn each_reader_is_released_by_itself(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let one = f.gets(&a.read_write("n").read()).await?;
    let other = f.gets(&b.read_write("n").read()).await?;
    let id = one.id().clone();
    unlock(one).await?;
    for client in [&a, &b] {
        let again = client.release(&id).await?;
        ensure!(
            again == lockkit_core::Released::NotHeld,
            "a second release freed something"
        );
    }
    ensure!(other.is_held(), "the other reader was lost");
    let tried = a.read_write("n").write().try_lock().await?;
    ensure!(tried.is_none(), "the other reader was released as well");
    unlock(other).await?;
    f.passes(&a.read_write("n").write()).await?;
    Ok(())
}

async fn a_name_is_another_one_as_a_mutex_and_as_a_semaphore(f: Arc<Fixture>) -> Outcome {
    let client = f.client().await?;
    let writer = f.gets(&client.read_write("n").write()).await?;
    let mutex = f.gets(&client.mutex("n")).await?;
    let permit = f.gets(&client.semaphore("n", 1)).await?;
    for guard in [writer, mutex, permit] {
        ensure!(guard.is_held(), "one took it from another: {guard:?}");
        unlock(guard).await?;
    }
    Ok(())
}
