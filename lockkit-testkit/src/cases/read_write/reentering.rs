//! One owner, several guards.

use std::sync::Arc;

use lockkit_core::{ErrorKind, Owner};

use super::rw;
use crate::cases::topic;
use crate::failure::ensure;
use crate::fixture::unlock;
use crate::{Fixture, Outcome};

topic! { "read_write":
    an_owner_that_reads_may_read_again_past_a_writer_in_line [ReadWrite],
    an_owner_that_writes_may_write_and_read [ReadWrite],
    an_owner_that_reads_and_asks_to_write_is_refused [ReadWrite],
    a_writer_with_other_guards_is_not_downgraded [ReadWrite],
}

async fn an_owner_that_reads_may_read_again_past_a_writer_in_line(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let me = Owner::new();
    let lock = a.read_write("n").owner(&me);
    let outer = f.gets(&lock.read()).await?;
    let write = b.read_write("n").write();
    let writer = (f.queues(&a, &rw("n")?, async move { write.lock().await })).await?;
    let inner = f.gets(&lock.read()).await?;
    ensure!(inner.id() == outer.id(), "two holds of one owner");
    unlock(outer).await?;
    ensure!(writer.waits().await, "a writer beside a reader");
    ensure!(inner.is_held(), "the inner guard was lost");
    unlock(inner).await?;
    unlock(writer.served().await?).await
}

async fn an_owner_that_writes_may_write_and_read(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let me = Owner::new();
    let lock = a.read_write("n").owner(&me);
    let outer = f.gets(&lock.write()).await?;
    let second = f.gets(&lock.write()).await?;
    let inner = f.gets(&lock.read()).await?;
    ensure!(inner.fence() == outer.fence(), "another fence");
    unlock(outer).await?;
    unlock(second).await?;
    // What is left of it is still a writer's.
    let tried = b.read_write("n").read().try_lock().await?;
    ensure!(tried.is_none(), "a reader beside a writer");
    unlock(inner).await?;
    f.passes(&b.read_write("n").write()).await?;
    Ok(())
}

async fn an_owner_that_reads_and_asks_to_write_is_refused(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let lock = a.read_write("n").owner(&Owner::new());
    let reader = f.gets(&lock.read()).await?;
    let write = lock.write();
    for answer in [write.try_lock().await.err(), write.lock().await.err()] {
        ensure!(
            answer.is_some_and(|e| e.kind() == ErrorKind::InvalidArgument),
            "a reader that asks to write waits for itself"
        );
    }
    ensure!(reader.is_held(), "lost by a refusal");
    unlock(f.gets(&b.read_write("n").read()).await?).await?;
    unlock(reader).await?;
    unlock(f.gets(&write).await?).await
}

async fn a_writer_with_other_guards_is_not_downgraded(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let lock = a.read_write("n").owner(&Owner::new());
    let outer = f.gets(&lock.write()).await?;
    let inner = f.gets(&lock.write()).await?;
    let refused = inner.downgrade().await.err();
    ensure!(
        refused.is_some_and(|e| e.kind() == ErrorKind::InvalidArgument),
        "downgraded behind the back of another guard"
    );
    ensure!(outer.is_held(), "the refusal ended the hold");
    let tried = b.read_write("n").read().try_lock().await?;
    ensure!(tried.is_none(), "a reader beside a writer");
    let reader = outer.downgrade().await?;
    unlock(f.gets(&b.read_write("n").read()).await?).await?;
    unlock(reader).await
}
