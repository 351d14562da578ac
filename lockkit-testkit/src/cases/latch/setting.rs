//! Setting a latch, and setting it anew.

use std::sync::Arc;

use lockkit_core::{Attempt, Claim, ErrorKind, Mode};
use tokio::time::timeout;

use super::{latch, waits};
use crate::cases::contract::{attempt, hold};
use crate::cases::topic;
use crate::failure::ensure;
use crate::{Fixture, Outcome};

topic! { "latch":
    a_latch_is_set_once_until_it_is_open [Latch],
    who_waits_before_it_is_set_goes_on_when_it_opens [Latch],
    a_latch_that_is_not_set_is_not_open [Latch],
    a_latch_of_zero_is_refused_before_any_request [Latch],
    a_latch_that_is_set_anew_is_closed_and_counts_anew [Latch],
    who_stood_in_line_passes_even_if_the_latch_is_set_anew_before_it_looks [Latch],
    a_latch_is_reset_only_while_nobody_counts [Latch],
    a_latch_outlives_whoever_set_it [Latch],
    a_latch_is_that_of_one_name_only [Latch],
}

async fn a_latch_is_set_once_until_it_is_open(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    ensure!(a.latch("n").count().await?.is_none(), "set by nobody");
    ensure!(a.latch("n").try_set(2).await?, "not set");
    for client in [&a, &b] {
        ensure!(!client.latch("n").try_set(5).await?, "set while closed");
        let count = client.latch("n").count().await?;
        ensure!(count == Some(2), "{count:?} left");
    }
    ensure!(b.latch("n").count_down("x").await? == 1, "not counted");
    ensure!(!a.latch("n").try_set(5).await?, "set while closed");
    ensure!(a.latch("n").count_down("y").await? == 0, "not counted");
    ensure!(b.latch("n").count().await? == Some(0), "not open");
    f.is_done(async move { a.latch("n").wait().await }).await
}

async fn who_waits_before_it_is_set_goes_on_when_it_opens(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let early = waits(&f, &b).await?;
    ensure!(a.latch("n").try_set(1).await?, "not set");
    ensure!(early.waits().await, "passed a closed latch");
    a.latch("n").count_down("x").await?;
    early.served().await
}

async fn a_latch_that_is_not_set_is_not_open(f: Arc<Fixture>) -> Outcome {
    let client = f.client().await?;
    let limit = std::time::Duration::from_millis(30);
    let answer = client.latch("n").wait_at_most(limit).await;
    ensure!(
        answer.is_err_and(|e| e.kind() == ErrorKind::Timeout),
        "passed a latch that nobody has set"
    );
    Ok(())
}

async fn a_latch_of_zero_is_refused_before_any_request(f: Arc<Fixture>) -> Outcome {
    let client = f.client().await?;
    let before = client.wire().requests();
    let answer = client.latch("n").try_set(0).await;
    ensure!(
        answer.is_err_and(|e| e.kind() == ErrorKind::InvalidArgument),
        "a latch of 0"
    );
    let requests = client.wire().requests() - before;
    ensure!(requests == 0, "{requests} requests");
    Ok(())
}

async fn a_latch_that_is_set_anew_is_closed_and_counts_anew(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    for _ in 0..3 {
        ensure!(a.latch("n").try_set(2).await?, "not set");
        ensure!(b.latch("n").count().await? == Some(2), "not set");
        let early = waits(&f, &b).await?;
        // The same participants as in the rounds before.
        ensure!(a.latch("n").count_down("x").await? == 1, "not counted");
        ensure!(early.waits().await, "passed a closed latch");
        ensure!(b.latch("n").count_down("y").await? == 0, "not counted");
        early.served().await?;
    }
    Ok(())
}

async fn who_stood_in_line_passes_even_if_the_latch_is_set_anew_before_it_looks(
    f: Arc<Fixture>,
) -> Outcome {
    let (a, b) = (f.backend().await?, f.backend().await?);
    let n = latch("n")?;
    let participant = lockkit_core::LockName::new("x")?;
    ensure!(a.set_latch(&n, 1).await?, "not set");
    let claim = f.claim_of(&n, Mode::Shared);
    let mut ticket = b.enter(claim.clone())?;
    ensure!(
        matches!(ticket.attempt().await?, Attempt::Busy { .. }),
        "passed a closed latch"
    );
    a.count_down(&n, &participant).await?;
    ensure!(a.set_latch(&n, 1).await?, "not set anew");
    let late = f.claim_of(&n, Mode::Shared);
    let late = Claim {
        wait: false,
        ..late
    };
    ensure!(
        matches!(attempt(&b, &late).await?, Attempt::Busy { .. }),
        "a latecomer passed a latch that was set anew"
    );
    let passed = async {
        loop {
            if let Attempt::Held(_) = ticket.attempt().await? {
                return Outcome::Ok(());
            }
            ticket.changed().await;
        }
    };
    timeout(f.soon(), passed).await??;
    let again = ticket.attempt().await?;
    ensure!(
        matches!(again, Attempt::Held(_)),
        "passed, and not when asked again, as after a lost answer"
    );
    for released in b.release(&[claim.id()]).await {
        released?;
    }
    let snapshot = a.inspect(&n).await?;
    ensure!(
        snapshot.holders.is_empty() && snapshot.waiters.is_empty(),
        "who has passed left something: {snapshot:?}"
    );
    a.count_down(&n, &participant).await?;
    hold(&b, &late).await?;
    Ok(())
}

async fn a_latch_is_reset_only_while_nobody_counts(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    ensure!(a.latch("n").try_set(1).await?, "not set");
    ensure!(!b.latch("n").reset().await?, "reset while closed");
    ensure!(a.latch("n").count().await? == Some(1), "not counted");
    a.latch("n").count_down("x").await?;
    ensure!(b.latch("n").reset().await?, "not reset");
    ensure!(a.latch("n").count().await?.is_none(), "not reset");
    a_latch_that_is_not_set_is_not_open(Arc::clone(&f)).await?;
    ensure!(b.latch("n").reset().await?, "refused without a reason");
    Ok(())
}

async fn a_latch_outlives_whoever_set_it(f: Arc<Fixture>) -> Outcome {
    let a = f.loose_client().await?;
    a.latch("n").try_set(2).await?;
    a.latch("n").count_down("x").await?;
    a.close().await?;
    let b = f.client().await?;
    let state = b.latch("n").state().await?;
    ensure!(state.is_some_and(|s| (s.left, s.of) == (1, 2)), "{state:?}");
    b.latch("n").count_down("y").await?;
    b.latch("n").wait().await?;
    Ok(())
}

async fn a_latch_is_that_of_one_name_only(f: Arc<Fixture>) -> Outcome {
    let client = f.client().await?;
    client.latch("n").try_set(1).await?;
    client.latch("n/2").try_set(2).await?;
    client.latch("n").count_down("x").await?;
    let other = client.latch("n/2").count().await?;
    ensure!(other == Some(2), "{other:?} left");
    client.latch("n").wait().await?;
    let mutex = f.passes(&client.mutex("n")).await;
    ensure!(mutex.is_ok(), "in the way of a mutex");
    Ok(())
}
