//! From writer to reader, and back.

use std::sync::Arc;

use lockkit_core::{ErrorKind, Guard, Mode, Upgraded};

use super::rw;
use crate::cases::topic;
use crate::failure::ensure;
use crate::fixture::unlock;
use crate::{Failure, Fixture, Outcome};

topic! { "read_write":
    a_writer_becomes_a_reader_without_letting_go [ReadWrite],
    no_writer_gets_in_while_a_writer_becomes_a_reader [ReadWrite],
    a_downgrade_lets_in_the_readers_that_wait [ReadWrite],
    a_reader_that_is_alone_becomes_a_writer [ReadWrite],
    an_upgrade_has_a_greater_fence [ReadWrite, Fences],
    a_reader_beside_another_stays_a_reader [ReadWrite],
    a_reader_does_not_become_a_writer_past_those_who_wait [ReadWrite],
    of_two_readers_that_upgrade_at_once_not_both_do [ReadWrite],
    a_conversion_of_what_is_gone_is_a_loss [ReadWrite],
    only_a_read_write_lock_is_converted [ReadWrite],
}

fn writer(upgraded: Upgraded) -> Outcome<Guard> {
    match upgraded {
        Upgraded::Writer(guard) => Ok(guard),
        Upgraded::Reader(_) => Err(Failure::new("a reader that is alone was refused")),
    }
}

fn reader(upgraded: Upgraded) -> Outcome<Guard> {
    match upgraded {
        Upgraded::Reader(guard) => Ok(guard),
        Upgraded::Writer(_) => Err(Failure::new("upgraded although somebody is in the way")),
    }
}

async fn a_writer_becomes_a_reader_without_letting_go(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let writer = f.gets(&a.read_write("n").write()).await?;
    let (id, fence) = (writer.id().clone(), writer.fence());
    let reader = writer.downgrade().await?;
    ensure!(*reader.id() == id, "another hold");
    ensure!(reader.fence() == fence, "another fence");
    ensure!(reader.mode() == Mode::Shared, "held {}", reader.mode());
    ensure!(reader.is_held(), "lost by a downgrade");
    let tried = b.read_write("n").write().try_lock().await?;
    ensure!(tried.is_none(), "a writer beside a reader");
    unlock(f.gets(&b.read_write("n").read()).await?).await?;
    // Once more changes nothing.
    let reader = reader.downgrade().await?;
    unlock(reader).await?;
    f.passes(&b.read_write("n").write()).await?;
    Ok(())
}

async fn no_writer_gets_in_while_a_writer_becomes_a_reader(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    for _ in 0..5 {
        let first = f.gets(&a.read_write("n").write()).await?;
        let fence = first.fence();
        let write = b.read_write("n").write();
        let second = (f.queues(&a, &rw("n")?, async move { write.lock().await })).await?;
        let reader = f.is_done(first.downgrade()).await?;
        ensure!(second.waits().await, "a writer got in between");
        ensure!(reader.is_held(), "lost by a downgrade");
        unlock(reader).await?;
        let second = second.served().await?;
        ensure!(second.fence() >= fence, "a fence fell");
        unlock(second).await?;
    }
    Ok(())
}

async fn a_downgrade_lets_in_the_readers_that_wait(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let first = f.gets(&a.read_write("n").write()).await?;
    let mut before = Vec::new();
    for client in [&a, &b] {
        let read = client.read_write("n").read();
        before.push((f.queues(&a, &rw("n")?, async move { read.lock().await })).await?);
    }
    let (write, read) = (b.read_write("n").write(), b.read_write("n").read());
    let second = (f.queues(&a, &rw("n")?, async move { write.lock().await })).await?;
    let behind = (f.queues(&a, &rw("n")?, async move { read.lock().await })).await?;
    let first = first.downgrade().await?;
    for reader in before {
        let reader = reader.served().await?;
        ensure!(reader.fence() == first.fence(), "another fence");
        ensure!(first.is_held(), "lost by a downgrade");
        unlock(reader).await?;
    }
    ensure!(second.waits().await, "a writer beside a reader");
    ensure!(behind.waits().await, "a reader went past a writer in line");
    unlock(first).await?;
    unlock(second.served().await?).await?;
    unlock(behind.served().await?).await
}

async fn a_reader_that_is_alone_becomes_a_writer(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let guard = f.gets(&a.read_write("n").read()).await?;
    let id = guard.id().clone();
    let guard = writer(guard.try_upgrade().await?)?;
    ensure!(*guard.id() == id, "another hold");
    ensure!(guard.mode() == Mode::Exclusive, "held {}", guard.mode());
    ensure!(guard.is_held(), "lost by an upgrade");
    let lock = b.read_write("n");
    let (read, write) = (lock.read(), lock.write());
    ensure!(read.try_lock().await?.is_none(), "a reader beside a writer");
    ensure!(write.try_lock().await?.is_none(), "two writers");
    let guard = writer(guard.try_upgrade().await?)?;
    unlock(guard).await?;
    f.passes(&write).await?;
    Ok(())
}

async fn an_upgrade_has_a_greater_fence(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let mut last = f.passes(&a.read_write("n").write()).await?;
    for client in [&b, &a] {
        let guard = f.gets(&client.read_write("n").read()).await?;
        ensure!(guard.fence() == last, "{} after {last}", guard.fence());
        let guard = writer(guard.try_upgrade().await?)?;
        ensure!(guard.fence() > last, "{} after {last}", guard.fence());
        last = guard.fence();
        let again = writer(guard.try_upgrade().await?)?;
        ensure!(again.fence() == last, "another fence without a new grant");
        let guard = again.downgrade().await?;
        ensure!(guard.fence() == last, "a downgrade changed the fence");
        unlock(guard).await?;
        let read = f.passes(&a.read_write("n").read()).await?;
        ensure!(read == last, "a read has {read}, the last write {last}");
    }
    let write = f.passes(&b.read_write("n").write()).await?;
    ensure!(write > last, "{write} after {last}");
    Ok(())
}

async fn a_reader_beside_another_stays_a_reader(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let mut one = f.gets(&a.read_write("n").read()).await?;
    let mut other = f.gets(&b.read_write("n").read()).await?;
    one = reader(one.try_upgrade().await?)?;
    other = reader(other.try_upgrade().await?)?;
    for guard in [&one, &other] {
        ensure!(guard.is_held(), "lost by a refusal");
        ensure!(guard.mode() == Mode::Shared, "held {}", guard.mode());
    }
    let waiters = a.inspect(&rw("n")?).await?.waiters;
    ensure!(waiters.is_empty(), "an upgrade took a place: {waiters:?}");
    unlock(one).await?;
    unlock(writer(other.try_upgrade().await?)?).await
}

async fn a_reader_does_not_become_a_writer_past_those_who_wait(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let guard = f.gets(&a.read_write("n").read()).await?;
    let write = b.read_write("n").write();
    let second = (f.queues(&a, &rw("n")?, async move { write.lock().await })).await?;
    let guard = reader(guard.try_upgrade().await?)?;
    ensure!(guard.is_held(), "lost by a refusal");
    ensure!(second.waits().await, "a writer beside a reader");
    unlock(guard).await?;
    unlock(second.served().await?).await
}

async fn of_two_readers_that_upgrade_at_once_not_both_do(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    for _ in 0..10 {
        let one = f.gets(&a.read_write("n").read()).await?;
        let other = f.gets(&b.read_write("n").read()).await?;
        let (one, other) = tokio::join!(
            tokio::spawn(one.try_upgrade()),
            tokio::spawn(other.try_upgrade()),
        );
        // Both are held until both were answered, so neither was ever alone.
        let (one, other) = (one??, other??);
        unlock(reader(one)?).await?;
        unlock(reader(other)?).await?;
    }
    Ok(())
}

async fn a_conversion_of_what_is_gone_is_a_loss(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let lock = a.read_write("n");
    for to_write in [true, false] {
        let guard = if to_write {
            f.gets(&lock.read()).await?
        } else {
            f.gets(&lock.write()).await?
        };
        f.harness().expire(&rw("n")?).await?;
        let next = f.gets(&b.read_write("n").write()).await?;
        let error = if to_write {
            guard.try_upgrade().await.err()
        } else {
            guard.downgrade().await.err()
        };
        ensure!(
            error.is_some_and(|e| e.kind() == ErrorKind::Lost),
            "converted what was gone"
        );
        let tried = a.read_write("n").read().try_lock().await?;
        ensure!(tried.is_none(), "a hold came back");
        unlock(next).await?;
    }
    Ok(())
}

async fn only_a_read_write_lock_is_converted(f: Arc<Fixture>) -> Outcome {
    let client = f.client().await?;
    let up = f.gets(&client.mutex("n")).await?.try_upgrade().await.err();
    let down = f.gets(&client.mutex("n")).await?.downgrade().await.err();
    for error in [up, down] {
        ensure!(
            error.is_some_and(|e| e.kind() == ErrorKind::InvalidArgument),
            "converted a mutex"
        );
    }
    f.passes(&client.mutex("n")).await?;
    Ok(())
}
