//! Attempts and releases: idempotent, and without a trace.

use std::sync::Arc;
use std::time::Duration;

use lockkit_core::{Attempt, AttemptId, Claim, HoldId, Order, Released, Renewal};
use tokio::time::timeout;

use super::{attempt, hold, only_holder, release, renew};
use crate::cases::topic;
use crate::failure::ensure;
use crate::{Failure, Fixture, Outcome};

topic! { "contract":
    an_attempt_repeated_is_the_same_grant [Fences],
    an_attempt_repeated_while_waiting_is_one_place_in_line [Line],
    a_second_release_finds_nothing_and_frees_nobody,
    an_unknown_id_changes_nothing,
    a_busy_try_leaves_no_trace,
    a_withdrawn_place_is_gone_and_is_never_served [Line],
    a_release_after_the_attempt_began_is_not_missed [Line],
}

async fn an_attempt_repeated_is_the_same_grant(f: Arc<Fixture>) -> Outcome {
    let backend = f.backend().await?;
    let claim = f.claim("n", true)?;
    let mut ticket = backend.enter(claim.clone())?;
    let Attempt::Held(first) = ticket.attempt().await? else {
        return Err(Failure::new("a free name was busy"));
    };
    for _ in 0..3 {
        match ticket.attempt().await? {
            Attempt::Held(again) => {
                ensure!(
                    again.fence == first.fence,
                    "granted twice: {first:?}, {again:?}"
                );
            }
            busy @ Attempt::Busy { .. } => {
                return Err(Failure::new(format!("in its own way: {busy:?}")));
            }
        }
    }
    // A retry may also come with another ticket, after a lost connection.
    let again = hold(&backend, &claim).await?;
    ensure!(
        again.fence == first.fence,
        "granted twice: {first:?}, {again:?}"
    );
    only_holder(&backend, &claim, first.fence).await?;
    ensure!(
        release(&backend, &claim.id()).await? == Released::Done,
        "the hold was not there"
    );
    let snapshot = backend.inspect(&claim.resource).await?;
    ensure!(
        snapshot.is_idle(),
        "one release did not undo all attempts: {snapshot:?}"
    );
    Ok(())
}

async fn an_attempt_repeated_while_waiting_is_one_place_in_line(f: Arc<Fixture>) -> Outcome {
    let backend = f.backend().await?;
    let (holder, waiter) = (f.claim("n", true)?, f.claim("n", true)?);
    hold(&backend, &holder).await?;
    let mut ticket = backend.enter(waiter.clone())?;
    for _ in 0..3 {
        let outcome = ticket.attempt().await?;
        ensure!(
            matches!(outcome, Attempt::Busy { .. }),
            "two holders: {outcome:?}"
        );
    }
    let waiters = backend.inspect(&waiter.resource).await?.waiters;
    ensure!(
        waiters.len() == 1,
        "one claim has {} places in line",
        waiters.len()
    );
    release(&backend, &waiter.id()).await?;
    release(&backend, &holder.id()).await?;
    Ok(())
}

async fn a_second_release_finds_nothing_and_frees_nobody(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.backend().await?, f.backend().await?);
    let (first, second) = (f.claim("n", false)?, f.claim("n", false)?);
    hold(&a, &first).await?;
    ensure!(
        release(&a, &first.id()).await? == Released::Done,
        "the hold was not there"
    );
    ensure!(
        release(&a, &first.id()).await? == Released::NotHeld,
        "released twice"
    );
    let grant = hold(&b, &second).await?;
    for backend in [&a, &b] {
        let again = release(backend, &first.id()).await?;
        ensure!(again == Released::NotHeld, "a late release freed something");
    }
    only_holder(&a, &second, grant.fence).await?;
    release(&b, &second.id()).await?;
    Ok(())
}

async fn an_unknown_id_changes_nothing(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.backend().await?, f.backend().await?);
    let claim = f.claim("n", false)?;
    let grant = hold(&a, &claim).await?;
    let unknown = HoldId::new(claim.resource.clone(), AttemptId::random());
    for backend in [&a, &b] {
        ensure!(
            release(backend, &unknown).await? == Released::NotHeld,
            "released a stranger"
        );
        ensure!(
            backend.evict(&unknown).await? == Released::NotHeld,
            "evicted a stranger"
        );
        let renewal = renew(backend, &unknown).await?;
        ensure!(
            matches!(renewal, Renewal::Gone),
            "renewed a stranger: {renewal:?}"
        );
        let extended = backend.extend(&unknown, f.long()).await;
        ensure!(
            matches!(extended, Renewal::Gone),
            "extended a stranger: {extended:?}"
        );
    }
    only_holder(&b, &claim, grant.fence).await?;
    let renewal = renew(&a, &claim.id()).await?;
    ensure!(
        matches!(renewal, Renewal::Renewed { .. }),
        "the holder lost it: {renewal:?}"
    );
    only_holder(&b, &claim, grant.fence).await?;
    release(&a, &claim.id()).await?;
    Ok(())
}

async fn a_busy_try_leaves_no_trace(f: Arc<Fixture>) -> Outcome {
    let backend = f.backend().await?;
    let claim = f.claim("n", false)?;
    hold(&backend, &claim).await?;
    for order in [Order::Barging, Order::Fair] {
        if order == Order::Fair && !backend.descriptor().fair {
            continue;
        }
        let busy = Claim {
            order,
            ..f.claim("n", false)?
        };
        let outcome = attempt(&backend, &busy).await?;
        ensure!(
            matches!(outcome, Attempt::Busy { .. }),
            "two holders: {outcome:?}"
        );
        let waiters = backend.inspect(&claim.resource).await?.waiters;
        ensure!(
            waiters.is_empty(),
            "a {order:?} try took a place in line: {waiters:?}"
        );
    }
    release(&backend, &claim.id()).await?;
    Ok(())
}

async fn a_withdrawn_place_is_gone_and_is_never_served(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.backend().await?, f.backend().await?);
    let (holder, waiter) = (f.claim("n", true)?, f.claim("n", true)?);
    hold(&a, &holder).await?;
    let mut ticket = b.enter(waiter.clone())?;
    ensure!(
        matches!(ticket.attempt().await?, Attempt::Busy { .. }),
        "two holders"
    );
    ensure!(
        release(&b, &waiter.id()).await? == Released::Done,
        "there was no place in line"
    );
    let waiters = a.inspect(&holder.resource).await?.waiters;
    ensure!(waiters.is_empty(), "the place is still there: {waiters:?}");

    release(&a, &holder.id()).await?;
    tokio::time::sleep(Duration::from_millis(50)).await;
    let snapshot = a.inspect(&holder.resource).await?;
    ensure!(
        snapshot.is_idle(),
        "granted to a place that was withdrawn: {snapshot:?}"
    );
    Ok(())
}

async fn a_release_after_the_attempt_began_is_not_missed(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.backend().await?, f.backend().await?);
    for round in 0..5 {
        let (holder, waiter) = (f.claim("n", true)?, f.claim("n", true)?);
        hold(&a, &holder).await?;
        let mut ticket = b.enter(waiter.clone())?;
        ensure!(
            matches!(ticket.attempt().await?, Attempt::Busy { .. }),
            "two holders"
        );
        // Before anyone listens:
        release(&a, &holder.id()).await?;
        let served = async {
            loop {
                ticket.changed().await;
                if let Attempt::Held(_) = ticket.attempt().await? {
                    return Outcome::Ok(());
                }
            }
        };
        let heard = timeout(f.soon(), served).await;
        heard.unwrap_or_else(|_| Err(Failure::new(format!("round {round}: nothing was heard"))))?;
        release(&b, &waiter.id()).await?;
    }
    Ok(())
}
