//! Asking the holder to let go.

use std::sync::Arc;

use lockkit_core::{Guard, Primitive};

use super::topic;
use crate::failure::ensure;
use crate::fixture::{mutex, resource, unlock};
use crate::{Fixture, Outcome};

topic! { "revocation":
    a_holder_is_asked_to_let_go_by_another_client [Revocation],
    a_holder_that_looks_late_sees_that_it_was_asked [Revocation],
    a_holder_that_lets_go_hands_over [Revocation],
    a_holder_that_does_not_heed_it_keeps_the_lock [Revocation],
    who_waits_is_not_asked [Revocation, Fair],
    every_reader_is_asked [Revocation, ReadWrite],
    a_detached_hold_has_nobody_to_ask [Revocation],
    nobody_is_asked_where_nobody_holds [Revocation],
    every_guard_of_an_owner_is_asked [Revocation],
}

async fn asked(f: &Fixture, guard: &Guard) -> Outcome {
    f.is_done(async {
        guard.revocation_requested().await;
        Ok(())
    })
    .await?;
    ensure!(guard.is_revocation_requested(), "asked and not asked");
    Ok(())
}

async fn a_holder_is_asked_to_let_go_by_another_client(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let guard = Arc::new(f.gets(&a.mutex("n")).await?);
    let other = f.gets(&a.mutex("other")).await?;
    let listens = Arc::clone(&guard);
    let heard = tokio::spawn(async move { listens.revocation_requested().await });
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    ensure!(!heard.is_finished(), "asked by nobody");
    let count = b.request_release(&mutex("n")?).await?;
    ensure!(count == 1, "{count} of 1 holder were asked");
    f.is_done(async move { Ok(heard.await) }).await??;
    ensure!(guard.is_held(), "asking took the lock away");
    ensure!(!other.is_revocation_requested(), "the neighbour was asked");
    let holders = b.inspect(&mutex("n")?).await?.holders;
    ensure!(
        holders.len() == 1 && holders[0].asked_to_release,
        "not shown: {holders:?}"
    );
    Ok(())
}

async fn a_holder_that_looks_late_sees_that_it_was_asked(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let guard = f.gets(&a.mutex("n")).await?;
    for _ in 0..2 {
        b.request_release(&mutex("n")?).await?;
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        asked(&f, &guard).await?;
        asked(&f, &guard).await?;
    }
    unlock(guard).await?;
    // The next holder was not asked.
    let next = f.gets(&a.mutex("n")).await?;
    ensure!(!next.is_revocation_requested(), "asked by nobody");
    Ok(())
}

async fn a_holder_that_lets_go_hands_over(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let guard = f.gets(&a.mutex("n")).await?;
    let obliging = tokio::spawn(async move {
        guard.revocation_requested().await;
        unlock(guard).await
    });
    let lock = b.mutex("n");
    let waiting = (f.queues(&b, &mutex("n")?, async move { lock.lock().await })).await?;
    ensure!(waiting.waits().await, "two holders");
    b.request_release(&mutex("n")?).await?;
    unlock(waiting.served().await?).await?;
    obliging.await?
}

async fn a_holder_that_does_not_heed_it_keeps_the_lock(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let guard = f.gets(&a.mutex("n").ttl(f.lease())).await?;
    let fence = guard.fence();
    let lock = b.mutex("n");
    let waiting = (f.queues(&b, &mutex("n")?, async move { lock.lock().await })).await?;
    b.request_release(&mutex("n")?).await?;
    asked(&f, &guard).await?;
    tokio::time::sleep(f.lease() * 2).await;
    ensure!(guard.is_held(), "asking took the lock away");
    ensure!(waiting.waits().await, "two holders");
    ensure!(guard.fence() == fence, "asking changed the fence");
    unlock(guard).await?;
    unlock(waiting.served().await?).await
}

async fn who_waits_is_not_asked(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let guard = f.gets(&a.mutex("n").fair()).await?;
    let lock = b.mutex("n").fair();
    let waiting = (f.queues(&b, &mutex("n")?, async move { lock.lock().await })).await?;
    let count = b.request_release(&mutex("n")?).await?;
    ensure!(count == 1, "{count} of 1 holder were asked");
    unlock(guard).await?;
    let next = waiting.served().await?;
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    ensure!(!next.is_revocation_requested(), "asked while it waited");
    unlock(next).await
}

async fn every_reader_is_asked(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let rw = resource(Primitive::ReadWrite, "n")?;
    let mut readers = Vec::new();
    for client in [&a, &b, &a] {
        readers.push(f.gets(&client.read_write("n").read()).await?);
    }
    let mutex = f.gets(&a.mutex("n")).await?;
    let count = b.request_release(&rw).await?;
    ensure!(count == 3, "{count} of 3 readers were asked");
    for reader in readers {
        asked(&f, &reader).await?;
        unlock(reader).await?;
    }
    ensure!(
        !mutex.is_revocation_requested(),
        "the holder of another resource was asked"
    );
    Ok(())
}

async fn a_detached_hold_has_nobody_to_ask(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let id = f.gets(&a.mutex("n")).await?.detach(f.long()).await?;
    let count = b.request_release(&mutex("n")?).await?;
    ensure!(count == 0, "{count} were asked");
    ensure!(b.mutex("n").try_lock().await?.is_none(), "two holders");
    b.release(&id).await?;
    Ok(())
}

async fn nobody_is_asked_where_nobody_holds(f: Arc<Fixture>) -> Outcome {
    let client = f.client().await?;
    let count = client.request_release(&mutex("n")?).await?;
    ensure!(count == 0, "{count} were asked");
    let guard = f.gets(&client.mutex("n")).await?;
    ensure!(!guard.is_revocation_requested(), "asked before it held");
    unlock(guard).await
}

async fn every_guard_of_an_owner_is_asked(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let lock = a.mutex("n").owner(&lockkit_core::Owner::new());
    let (outer, inner) = (f.gets(&lock).await?, f.gets(&lock).await?);
    let count = b.request_release(&mutex("n")?).await?;
    ensure!(count == 1, "{count} of 1 hold were asked");
    asked(&f, &outer).await?;
    asked(&f, &inner).await
}
