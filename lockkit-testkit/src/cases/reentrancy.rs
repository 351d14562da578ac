//! Reentrancy, for whoever asks for it and nobody else.

use std::sync::Arc;
use std::time::Duration;

use lockkit_core::{ErrorKind, Owner, Unlocked};
use tokio::time::{sleep, timeout};

use super::topic;
use crate::failure::ensure;
use crate::fixture::{mutex, unlock};
use crate::{Failure, Fixture, Outcome};

topic! { "reentrancy":
    an_owner_enters_again_without_a_request,
    the_last_guard_of_an_owner_frees_the_name,
    other_owners_and_nobody_wait_like_anyone,
    an_owner_does_not_enter_again_what_was_lost,
    an_inner_lock_does_not_shorten_the_lease,
    two_calls_of_one_owner_that_wait_both_get_in,
}

async fn an_owner_enters_again_without_a_request(f: Arc<Fixture>) -> Outcome {
    let client = f.client().await?;
    let me = Owner::new();
    let outer = f.gets(&client.mutex("n").owner(&me)).await?;
    let before = client.wire().requests();
    let inner = f.gets(&client.mutex("n").owner(&me.clone())).await?;
    let tried = client.mutex("n").owner(&me).try_lock().await?;
    let tried = tried.ok_or_else(|| Failure::new("in one's own way"))?;
    ensure!(client.wire().requests() == before, "a request was sent");
    for guard in [&inner, &tried] {
        ensure!(
            guard.fence() == outer.fence(),
            "{} inside {}",
            guard.fence(),
            outer.fence()
        );
        ensure!(guard.id() == outer.id(), "another hold inside the first");
    }
    Ok(())
}

async fn the_last_guard_of_an_owner_frees_the_name(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let me = Owner::new();
    let lock = a.mutex("n").owner(&me);
    for _ in 0..3 {
        // The outer one may well go first.
        let guards = [
            f.gets(&lock).await?,
            f.gets(&lock).await?,
            f.gets(&lock).await?,
        ];
        for (i, guard) in guards.into_iter().enumerate() {
            ensure!(
                b.mutex("n").try_lock().await?.is_none(),
                "free with {} guards left",
                3 - i
            );
            if i == 1 {
                drop(guard);
            } else {
                ensure!(
                    guard.unlock().await? == Unlocked::Clean,
                    "guard {i} was lost"
                );
            }
        }
        f.passes(&b.mutex("n")).await?;
    }
    Ok(())
}

async fn other_owners_and_nobody_wait_like_anyone(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let (me, you) = (Owner::new(), Owner::new());
    let guard = f.gets(&a.mutex("n").owner(&me)).await?;
    ensure!(
        a.mutex("n").owner(&you).try_lock().await?.is_none(),
        "another owner got in"
    );
    ensure!(
        a.mutex("n").try_lock().await?.is_none(),
        "nobody in particular got in"
    );
    ensure!(
        b.mutex("n").owner(&me).try_lock().await?.is_none(),
        "got in through another client"
    );
    let waits = a
        .mutex("n")
        .owner(&you)
        .wait(Duration::from_millis(30))
        .lock()
        .await;
    ensure!(
        waits.is_err_and(|e| e.kind() == ErrorKind::Timeout),
        "another owner got in"
    );
    unlock(guard).await?;
    f.passes(&a.mutex("n").owner(&you)).await?;
    Ok(())
}

async fn an_owner_does_not_enter_again_what_was_lost(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let me = Owner::new();
    let lock = a.mutex("n").owner(&me).ttl(f.lease());
    let outer = f.gets(&lock).await?;
    f.harness().expire(&mutex("n")?).await?;
    timeout(f.lease() + f.soon(), outer.lost()).await?;
    let Err(error) = lock.lock().await else {
        return Err(Failure::new("entered what was lost"));
    };
    ensure!(error.kind() == ErrorKind::Lost, "{error}");
    // Once the owner has let go of what was lost, it may begin anew.
    let _lost = outer.unlock().await?;
    f.passes(&lock).await?;
    f.passes(&b.mutex("n")).await?;
    Ok(())
}

async fn an_inner_lock_does_not_shorten_the_lease(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let me = Owner::new();
    let outer = f.gets(&a.mutex("n").owner(&me)).await?;
    let until = outer.valid_until();
    let inner = f
        .gets(&a.mutex("n").owner(&me).ttl(f.lease()).without_watchdog())
        .await?;
    ensure!(
        outer.valid_until() >= until,
        "the inner lock shortened the lease"
    );
    unlock(inner).await?;
    ensure!(
        outer.valid_until() >= until,
        "the inner unlock shortened the lease"
    );
    sleep(f.lease() + Duration::from_millis(200)).await;
    ensure!(outer.is_held(), "the outer hold ended with the inner lease");
    ensure!(b.mutex("n").try_lock().await?.is_none(), "two holders");
    Ok(())
}

async fn two_calls_of_one_owner_that_wait_both_get_in(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let me = Owner::new();
    let holder = f.gets(&b.mutex("n")).await?;
    let calls = [0; 2].map(|_| {
        let lock = a.mutex("n").owner(&me);
        tokio::spawn(async move { lock.lock().await })
    });
    f.stand(&b, &mutex("n")?, 1).await?;
    unlock(holder).await?;
    let mut guards = Vec::new();
    for call in calls {
        guards.push(timeout(f.soon(), call).await???);
    }
    ensure!(
        guards[0].fence() == guards[1].fence(),
        "two holds of one owner"
    );
    Ok(())
}
