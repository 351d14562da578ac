//! How permits come back.

use std::sync::Arc;

use lockkit_core::{HoldId, Released};
use tokio::time::{sleep, timeout};

use super::{available, semaphore};
use crate::cases::topic;
use crate::failure::ensure;
use crate::fixture::unlock;
use crate::{Fixture, Outcome};

topic! { "semaphore":
    permits_that_ran_out_come_back [Semaphore],
    a_permit_released_twice_comes_back_once [Semaphore],
    a_detached_permit_released_twice_comes_back_once [Semaphore],
    a_detached_permit_lives_by_its_own_expiry [Semaphore],
    a_detached_permit_outlives_its_client_and_is_renewed_from_elsewhere [Semaphore],
    a_permit_that_ran_out_and_is_released_late_frees_nobody_elses [Semaphore],
}

async fn permits_that_ran_out_come_back(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let brief = a.semaphore("n", 3).ttl(f.lease()).without_watchdog();
    let brief = f.gets(&brief.permits(2)).await?;
    let stays = f.gets(&b.semaphore("n", 3)).await?;
    let lock = b.semaphore("n", 3);
    let next = timeout(f.lease() * 2 + f.soon(), lock.acquire_many(2)).await??;
    ensure!(!brief.is_held(), "3 of 2 permits are believed in");
    ensure!(stays.is_held(), "the neighbour was lost");
    unlock(next).await?;
    unlock(stays).await?;
    available(&a, "n", 3, 3).await
}

async fn a_permit_released_twice_comes_back_once(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let first = f.gets(&a.semaphore("n", 2)).await?;
    let second = f.gets(&b.semaphore("n", 2)).await?;
    let id = first.id().clone();
    unlock(first).await?;
    for client in [&a, &b, &a] {
        let again = client.release(&id).await?;
        ensure!(again == Released::NotHeld, "released twice");
    }
    ensure!(second.is_held(), "somebody else's permit was released");
    available(&a, "n", 2, 1).await?;
    unlock(second).await?;
    available(&a, "n", 2, 2).await
}

async fn a_detached_permit_released_twice_comes_back_once(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let many = f.gets(&a.semaphore("n", 4).permits(2)).await?;
    let many = many.detach(f.long()).await?;
    let one = f.gets(&a.semaphore("n", 4)).await?.detach(f.long()).await?;
    available(&b, "n", 4, 1).await?;
    // As a shell script would keep it.
    let many: HoldId = many.to_string().parse()?;
    ensure!(b.release(&many).await? == Released::Done, "it was gone");
    available(&b, "n", 4, 3).await?;
    for client in [&a, &b] {
        let again = client.release(&many).await?;
        ensure!(again == Released::NotHeld, "released twice");
        available(client, "n", 4, 3).await?;
    }
    ensure!(b.release(&one).await? == Released::Done, "it was gone");
    available(&b, "n", 4, 4).await
}

async fn a_detached_permit_lives_by_its_own_expiry(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let brief = f.gets(&a.semaphore("n", 2)).await?;
    let long = f.gets(&a.semaphore("n", 2)).await?;
    let brief = brief.detach(f.lease()).await?;
    let long = long.detach(f.long()).await?;
    available(&b, "n", 2, 0).await?;
    let lock = b.semaphore("n", 2);
    let next = timeout(f.lease() * 2 + f.soon(), lock.acquire()).await??;
    sleep(f.lease() * 2).await;
    available(&b, "n", 2, 0).await?;
    ensure!(
        a.release(&brief).await? == Released::NotHeld,
        "released what had run out"
    );
    available(&b, "n", 2, 0).await?;
    ensure!(b.release(&long).await? == Released::Done, "it was gone");
    unlock(next).await
}

async fn a_detached_permit_outlives_its_client_and_is_renewed_from_elsewhere(
    f: Arc<Fixture>,
) -> Outcome {
    let (a, b) = (f.loose_client().await?, f.client().await?);
    let permit = f.gets(&a.semaphore("n", 2)).await?;
    let permit = permit.detach(f.lease()).await?;
    a.close().await?;
    for _ in 0..4 {
        sleep(f.lease() / 2).await;
        b.renew(&permit, f.lease()).await?;
        available(&b, "n", 2, 1).await?;
    }
    let holders = b.inspect(&semaphore("n")?).await?.holders;
    ensure!(
        holders.len() == 1 && holders[0].detached,
        "not one detached permit: {holders:?}"
    );
    let lock = b.semaphore("n", 2).permits(2);
    unlock(timeout(f.lease() * 2 + f.soon(), lock.acquire()).await??).await
}

async fn a_permit_that_ran_out_and_is_released_late_frees_nobody_elses(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let brief = a.semaphore("n", 1).ttl(f.lease()).without_watchdog();
    let brief = f.gets(&brief).await?;
    let lock = b.semaphore("n", 1);
    let next = timeout(f.lease() * 2 + f.soon(), lock.acquire()).await??;
    let id = brief.id().clone();
    drop(brief);
    sleep(std::time::Duration::from_millis(20)).await;
    ensure!(
        a.release(&id).await? == Released::NotHeld,
        "released somebody else's permit"
    );
    available(&a, "n", 1, 0).await?;
    ensure!(next.is_held(), "somebody else's permit was released");
    unlock(next).await
}
