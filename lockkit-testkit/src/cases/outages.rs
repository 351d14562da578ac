//! Requests that are lost, answers that are lost, answers that come late.

use std::sync::Arc;
use std::time::Duration;

use lockkit_core::{ErrorKind, LossReason, Unlocked};
use tokio::time::{Instant, sleep, timeout};

use super::topic;
use crate::failure::ensure;
use crate::fixture::{mutex, unlock};
use crate::{Failure, Fault, Fixture, Outcome};

topic! { "outages":
    a_loss_is_told_before_anyone_else_gets_in,
    a_short_outage_is_not_a_loss,
    one_failed_renewal_is_not_a_loss,
    a_lost_reply_to_a_lock_does_not_lock_twice,
    a_lost_reply_to_a_try_leaves_nothing,
    a_lost_reply_to_an_unlock_frees_the_name_all_the_same,
    an_unlock_that_did_not_arrive_is_sent_again,
    a_cancelled_wait_is_withdrawn_after_an_outage [Line],
    a_grant_that_arrives_after_the_deadline_is_undone,
    a_grant_whose_lease_was_over_on_arrival_is_not_used,
}

async fn a_loss_is_told_before_anyone_else_gets_in(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let mut contenders = tokio::task::JoinSet::new();
    for i in 0..10 {
        let name = format!("n{i}");
        let guard = f.gets(&a.mutex(&name).ttl(f.lease())).await?;
        let (lock, bound) = (b.mutex(&name), f.lease() * 3 + f.soon());
        contenders.spawn(async move {
            let next = timeout(bound, lock.lock()).await??;
            // Asked at the very instant at which somebody else is in.
            ensure!(
                !guard.is_held(),
                "believed for {:?} more",
                guard.remaining()
            );
            let reason = timeout(Duration::from_secs(1), guard.lost()).await?;
            ensure!(
                reason == LossReason::Expired,
                "lost for another reason: {reason}"
            );
            Ok((guard, next))
        });
        sleep(f.lease() / 23).await;
    }
    // Somewhere between two renewals of each.
    a.wire().set(Fault::Cut);
    let mut guards = Vec::new();
    while let Some(done) = contenders.join_next().await {
        guards.push(done??);
    }
    a.wire().set(Fault::None);
    for (lost, next) in guards {
        let unlocked = lost.unlock().await?;
        ensure!(
            matches!(unlocked, Unlocked::Lost(_)),
            "unlocked what was lost"
        );
        ensure!(
            next.unlock().await? == Unlocked::Clean,
            "the late unlock freed it"
        );
    }
    Ok(())
}

async fn a_short_outage_is_not_a_loss(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let lease = f.lease() * 2;
    let guard = f.gets(&a.mutex("n").ttl(lease)).await?;
    for fault in [Fault::Cut, Fault::LostReply] {
        a.wire().set(fault);
        sleep(lease / 2).await;
        a.wire().set(Fault::None);
        let end = Instant::now() + lease;
        while Instant::now() < end {
            ensure!(
                guard.is_held(),
                "lost in an outage of half a lease ({fault:?})"
            );
            ensure!(
                b.mutex("n").try_lock().await?.is_none(),
                "two holders ({fault:?})"
            );
            sleep(lease / 20).await;
        }
    }
    ensure!(
        guard.unlock().await? == Unlocked::Clean,
        "the hold was lost"
    );
    Ok(())
}

async fn one_failed_renewal_is_not_a_loss(f: Arc<Fixture>) -> Outcome {
    let client = f.client().await?;
    let guard = f.gets(&client.mutex("n").ttl(f.lease())).await?;
    for fault in [Fault::Cut, Fault::LostReply] {
        client.wire().set_for(fault, 1);
        sleep(f.lease()).await;
        ensure!(guard.is_held(), "lost by one renewal ({fault:?})");
    }
    ensure!(
        guard.unlock().await? == Unlocked::Clean,
        "the hold was lost"
    );
    Ok(())
}

async fn a_lost_reply_to_a_lock_does_not_lock_twice(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    for fault in [Fault::Cut, Fault::LostReply] {
        for lost in 1..=3 {
            a.wire().set_for(fault, lost);
            let guard = f.gets(&a.mutex("n")).await?;
            let snapshot = b.inspect(&mutex("n")?).await?;
            let alone = snapshot.holders.len() == 1 && snapshot.waiters.is_empty();
            ensure!(
                alone,
                "{fault:?} x {lost} left more than one hold: {snapshot:?}"
            );
            ensure!(
                snapshot.holders[0].fence == guard.fence(),
                "another fence: {snapshot:?}"
            );
            ensure!(
                guard.unlock().await? == Unlocked::Clean,
                "the hold was lost"
            );
            let next = b.mutex("n").try_lock().await?;
            ensure!(next.is_some(), "{fault:?} x {lost}: busy after the unlock");
        }
    }
    Ok(())
}

async fn a_lost_reply_to_a_try_leaves_nothing(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    for fault in [Fault::Cut, Fault::LostReply] {
        a.wire().set_for(fault, 1);
        match a.mutex("n").try_lock().await {
            // It may try once more by itself.
            Ok(guard) => ensure!(guard.is_some(), "a free name was busy"),
            Err(error) => ensure!(error.kind() == ErrorKind::Unavailable, "{error}"),
        }
        f.passes(&b.mutex("n")).await?;
        f.until(&b, "n", "idle", lockkit_core::Snapshot::is_idle)
            .await?;
    }
    Ok(())
}

async fn a_lost_reply_to_an_unlock_frees_the_name_all_the_same(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let guard = f.gets(&a.mutex("n")).await?;
    a.wire().set_for(Fault::LostReply, 1);
    if let Err(error) = guard.unlock().await {
        ensure!(error.kind() == ErrorKind::Unavailable, "{error}");
    }
    f.passes(&b.mutex("n")).await?;
    Ok(())
}

async fn an_unlock_that_did_not_arrive_is_sent_again(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let (unlocked, dropped) = (f.gets(&a.mutex("x")).await?, f.gets(&a.mutex("y")).await?);
    a.wire().set(Fault::Cut);
    let outcome = unlocked.unlock().await;
    let unavailable = outcome.is_err_and(|error| error.kind() == ErrorKind::Unavailable);
    ensure!(unavailable, "unlocked without a word to the service");
    drop(dropped);
    sleep(Duration::from_millis(100)).await;
    a.wire().set(Fault::None);
    f.passes(&b.mutex("x")).await?;
    f.passes(&b.mutex("y")).await?;
    Ok(())
}

async fn a_cancelled_wait_is_withdrawn_after_an_outage(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let guard = f.gets(&b.mutex("n")).await?;
    let lock = a.mutex("n");
    let waiter = tokio::spawn(async move { lock.lock().await });
    f.until(&b, "n", "one waiter", |s| s.waiters.len() == 1)
        .await?;
    a.wire().set(Fault::Cut);
    waiter.abort();
    sleep(Duration::from_millis(100)).await;
    a.wire().set(Fault::None);
    f.until(&b, "n", "without waiters", |s| s.waiters.is_empty())
        .await?;
    unlock(guard).await?;
    Ok(())
}

async fn a_grant_that_arrives_after_the_deadline_is_undone(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    a.wire()
        .set_for(Fault::LateReply(Duration::from_millis(400)), 1);
    let Err(error) = a.mutex("n").wait(Duration::from_millis(100)).lock().await else {
        return Err(Failure::new("locked after the deadline"));
    };
    ensure!(error.kind() == ErrorKind::Timeout, "{error}");
    f.passes(&b.mutex("n")).await?;
    f.until(&b, "n", "idle", lockkit_core::Snapshot::is_idle)
        .await?;
    Ok(())
}

async fn a_grant_whose_lease_was_over_on_arrival_is_not_used(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let late = f.lease() + Duration::from_millis(200);
    a.wire().set_for(Fault::LateReply(late), 1);
    let guard = timeout(late + f.soon(), a.mutex("n").ttl(f.lease()).lock()).await??;
    ensure!(guard.is_held(), "born lost");
    ensure!(b.mutex("n").try_lock().await?.is_none(), "two holders");
    ensure!(
        guard.unlock().await? == Unlocked::Clean,
        "the hold was lost"
    );
    Ok(())
}
