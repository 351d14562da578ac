//! Operations on read-write locks, dropped after every number of polls.

use std::sync::Arc;

use lockkit_core::Primitive;

use super::{WAIT, free, waiting};
use crate::cases::topic;
use crate::failure::ensure;
use crate::fixture::{resource, unlock};
use crate::{Client, Fixture, Outcome, Round, sweep_of};

topic! { "cancellation":
    a_read_lock_can_be_dropped_at_any_poll [ReadWrite],
    a_write_lock_can_be_dropped_at_any_poll [ReadWrite],
    a_read_lock_that_waits_can_be_dropped_at_any_poll [ReadWrite],
    a_write_lock_that_waits_can_be_dropped_at_any_poll [ReadWrite],
    a_read_lock_can_be_dropped_while_it_is_granted [ReadWrite],
    a_write_lock_that_is_dropped_lets_the_readers_behind_it_in [ReadWrite],
    a_downgrade_can_be_dropped_at_any_poll [ReadWrite],
    an_upgrade_can_be_dropped_at_any_poll [ReadWrite],
    an_upgrade_that_is_refused_can_be_dropped_at_any_poll [ReadWrite],
    an_unlock_of_a_reader_can_be_dropped_at_any_poll [ReadWrite],
    a_detachment_of_a_reader_can_be_dropped_at_any_poll [ReadWrite],
}

fn alone(client: &Client) -> lockkit_core::WriteLock {
    client.read_write("n").write()
}

async fn a_read_lock_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    free(&f, alone, |client| client.read_write("n").read()).await
}

async fn a_write_lock_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    free(&f, alone, alone).await
}

async fn a_read_lock_that_waits_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    let read = |client: &Client| client.read_write("n").wait(WAIT).read();
    waiting(&f, alone, alone, read, None).await
}

async fn a_write_lock_that_waits_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    let read = |client: &Client| client.read_write("n").read();
    let write = |client: &Client| client.read_write("n").wait(WAIT).write();
    waiting(&f, alone, read, write, None).await
}

async fn a_read_lock_can_be_dropped_while_it_is_granted(f: Arc<Fixture>) -> Outcome {
    for polls in 1..4 {
        let read = |client: &Client| client.read_write("n").read();
        waiting(&f, alone, alone, read, Some(polls)).await?;
    }
    Ok(())
}

async fn a_write_lock_that_is_dropped_lets_the_readers_behind_it_in(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let rw = resource(Primitive::ReadWrite, "n")?;
    let start = || {
        let (f, a, b, rw) = (Arc::clone(&f), a.clone(), b.clone(), rw.clone());
        async move {
            let reader = f.gets(&a.read_write("n").read()).await?;
            let write = b.read_write("n").wait(WAIT).write();
            Ok(
                Round::new(async move { write.lock().await }).after(async move {
                    let read = a.read_write("n").read();
                    unlock(f.is_done(async move { read.lock().await }).await?).await?;
                    f.until_of(&a, &rw, "without waiters", |s| s.waiters.is_empty())
                        .await?;
                    ensure!(reader.is_held(), "the holder lost it");
                    unlock(reader).await
                }),
            )
        }
    };
    sweep_of(&f, alone, start).await
}

async fn a_downgrade_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    let client = f.client().await?;
    let start = || {
        let (f, client) = (Arc::clone(&f), client.clone());
        async move {
            let writer = f.gets(&alone(&client)).await?;
            Ok(Round::new(writer.downgrade()))
        }
    };
    sweep_of(&f, alone, start).await
}

async fn an_upgrade_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    let client = f.client().await?;
    let start = || {
        let (f, client) = (Arc::clone(&f), client.clone());
        async move {
            let reader = f.gets(&client.read_write("n").read()).await?;
            Ok(Round::new(reader.try_upgrade()))
        }
    };
    sweep_of(&f, alone, start).await
}

async fn an_upgrade_that_is_refused_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    let (client, other) = (f.client().await?, f.client().await?);
    let start = || {
        let (f, client, other) = (Arc::clone(&f), client.clone(), other.clone());
        async move {
            let reader = f.gets(&client.read_write("n").read()).await?;
            let beside = f.gets(&other.read_write("n").read()).await?;
            Ok(Round::new(reader.try_upgrade()).after(async move {
                ensure!(beside.is_held(), "the other reader lost it");
                unlock(beside).await
            }))
        }
    };
    sweep_of(&f, alone, start).await
}

async fn an_unlock_of_a_reader_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    super::unlocking(&f, alone, |client| client.read_write("n").read()).await
}

async fn a_detachment_of_a_reader_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    super::detaching(&f, alone, |client| client.read_write("n").read()).await
}
