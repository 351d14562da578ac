//! Leases: kept alive, ended in time, and the loss told before anyone else gets in.

use std::sync::Arc;
use std::time::Duration;

use lockkit_core::{ErrorKind, LossReason, Unlocked};
use tokio::time::{Instant, sleep, timeout};

use super::topic;
use crate::failure::ensure;
use crate::fixture::{mutex, unlock};
use crate::{Failure, Fixture, Outcome};

topic! { "lease":
    the_watchdog_keeps_a_hold_for_longer_than_its_lease,
    a_hold_that_nobody_renews_ends_with_its_lease,
    a_hold_is_believed_no_longer_than_the_service_keeps_it,
    a_hold_that_was_taken_away_is_told_lost,
    a_loss_ends_the_work_under_the_guard,
    a_guard_that_is_lost_says_so_at_once_and_for_good,
    short_and_long_leases_of_one_client_live_side_by_side,
}

async fn the_watchdog_keeps_a_hold_for_longer_than_its_lease(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let guard = f.gets(&a.mutex("n").ttl(f.lease())).await?;
    let (token, fence) = (guard.cancellation_token(), guard.fence());
    let end = Instant::now() + f.lease() * 3;
    while Instant::now() < end {
        ensure!(b.mutex("n").try_lock().await?.is_none(), "two holders");
        ensure!(guard.is_held(), "lost while it was renewed");
        sleep(f.lease() / 10).await;
    }
    ensure!(!token.is_cancelled(), "told lost while it was held");
    ensure!(guard.fence() == fence, "a renewal changed the fence");
    ensure!(
        guard.unlock().await? == Unlocked::Clean,
        "the hold was lost"
    );
    ensure!(!token.is_cancelled(), "an unlock is told as a loss");
    f.passes(&b.mutex("n")).await?;
    Ok(())
}

async fn a_hold_that_nobody_renews_ends_with_its_lease(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let guard = f
        .gets(&a.mutex("n").ttl(f.lease()).without_watchdog())
        .await?;
    let since = Instant::now();
    let reason = timeout(f.lease() + f.soon(), guard.lost()).await?;
    ensure!(
        reason == LossReason::Expired,
        "lost for another reason: {reason}"
    );
    ensure!(!guard.is_held(), "lost, and held");
    let lasted = since.elapsed();
    ensure!(
        lasted <= f.by_clock(f.lease(), f.lease() + f.soon()),
        "told after {lasted:?}"
    );
    let next = timeout(f.lease() + f.soon(), b.mutex("n").lock()).await??;
    ensure!(
        f.rises(guard.fence(), next.fence()),
        "{} after {}",
        next.fence(),
        guard.fence()
    );
    let unlocked = guard.unlock().await?;
    ensure!(
        unlocked == Unlocked::Lost(LossReason::Expired),
        "unlocked what was lost"
    );
    ensure!(
        next.unlock().await? == Unlocked::Clean,
        "the late unlock freed it"
    );
    Ok(())
}

async fn a_hold_is_believed_no_longer_than_the_service_keeps_it(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let mut contenders = tokio::task::JoinSet::new();
    for i in 0..8 {
        let name = format!("n{i}");
        let guard = f
            .gets(&a.mutex(&name).ttl(f.lease()).without_watchdog())
            .await?;
        let (lock, bound) = (b.mutex(&name), f.lease() * 2 + f.soon());
        contenders.spawn(async move {
            // Tries all the time: the first instant at which the service lets somebody in counts.
            let first = async {
                loop {
                    if let Some(next) = lock.try_lock().await? {
                        return Outcome::Ok(next);
                    }
                    sleep(Duration::from_millis(5)).await;
                }
            };
            let next = timeout(bound, first).await??;
            ensure!(
                !guard.is_held(),
                "believed for {:?} more",
                guard.remaining()
            );
            let told = timeout(Duration::from_secs(1), guard.lost()).await;
            ensure!(told.is_ok(), "the loss was not told");
            unlock(next).await?;
            Ok(())
        });
        // Out of step with each other and with any timer.
        sleep(Duration::from_millis(7)).await;
    }
    while let Some(done) = contenders.join_next().await {
        done??;
    }
    Ok(())
}

async fn a_hold_that_was_taken_away_is_told_lost(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let guard = f.gets(&a.mutex("n").ttl(f.lease())).await?;
    f.harness().expire(&mutex("n")?).await?;
    let next = f.gets(&b.mutex("n")).await?;
    // At the next renewal at the latest, and so before half of the lease is over.
    let bound = f.by_clock(f.lease() / 2, f.lease() + f.soon());
    let told = timeout(bound, guard.lost()).await;
    let reason = told.map_err(|_| Failure::new(format!("not told within {bound:?}")))?;
    ensure!(
        reason == LossReason::Gone,
        "lost for another reason: {reason}"
    );
    ensure!(!guard.is_held(), "lost, and held");
    ensure!(next.is_held(), "the new holder lost it as well");
    ensure!(
        next.unlock().await? == Unlocked::Clean,
        "the new hold was lost"
    );
    Ok(())
}

async fn a_loss_ends_the_work_under_the_guard(f: Arc<Fixture>) -> Outcome {
    let client = f.client().await?;
    let guard = f.gets(&client.mutex("n").ttl(f.lease())).await?;
    ensure!(
        guard.while_held(async { 7 }).await? == 7,
        "other work was done"
    );
    let token = guard.cancellation_token();
    f.harness().expire(&mutex("n")?).await?;
    let work = guard.while_held(std::future::pending::<()>());
    let Err(error) = timeout(f.lease() + f.soon(), work).await? else {
        return Err(Failure::new("endless work has ended"));
    };
    ensure!(error.kind() == ErrorKind::Lost, "{error}");
    ensure!(token.is_cancelled(), "the token was not cancelled");
    Ok(())
}

async fn a_guard_that_is_lost_says_so_at_once_and_for_good(f: Arc<Fixture>) -> Outcome {
    let client = f.client().await?;
    let guard = f
        .gets(&client.mutex("n").ttl(f.lease()).without_watchdog())
        .await?;
    sleep(f.lease()).await;
    ensure!(!guard.is_held(), "held without a lease");
    let bound = f.by_clock(Duration::from_millis(1), f.soon());
    timeout(bound, guard.lost()).await?;
    ensure!(
        guard.cancellation_token().is_cancelled(),
        "a new token is not cancelled"
    );
    let work = guard.while_held(async {}).await;
    ensure!(
        work.is_err_and(|e| e.kind() == ErrorKind::Lost),
        "worked under a lost guard"
    );
    ensure!(
        guard.remaining().is_zero(),
        "{:?} remain",
        guard.remaining()
    );
    // The name is free again, and that brings nothing back.
    f.passes(&client.mutex("n")).await?;
    ensure!(!guard.is_held(), "found again");
    let detached = guard.detach(f.long()).await;
    ensure!(
        detached.is_err_and(|e| e.kind() == ErrorKind::Lost),
        "detached what was lost"
    );
    Ok(())
}

async fn short_and_long_leases_of_one_client_live_side_by_side(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let long = f.gets(&a.mutex("long")).await?;
    let short = f.gets(&a.mutex("short").ttl(f.lease())).await?;
    let unrenewed = f
        .gets(&a.mutex("unrenewed").ttl(f.lease()).without_watchdog())
        .await?;
    let later = f.gets(&a.mutex("later")).await?;
    sleep(f.lease() * 2).await;
    ensure!(
        long.is_held() && short.is_held() && later.is_held(),
        "one was lost"
    );
    ensure!(!unrenewed.is_held(), "renewed by its neighbours");
    for name in ["long", "short", "later"] {
        ensure!(b.mutex(name).try_lock().await?.is_none(), "{name} is free");
    }
    let next = timeout(f.lease() + f.soon(), b.mutex("unrenewed").lock()).await??;
    ensure!(
        f.rises(unrenewed.fence(), next.fence()),
        "{} after {}",
        next.fence(),
        unrenewed.fence()
    );
    Ok(())
}
