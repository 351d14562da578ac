//! How all names are let go.

use std::sync::Arc;
use std::time::Duration;

use lockkit_core::{ErrorKind, MultiLock, Unlocked};
use tokio::time::timeout;

use super::all_are_free;
use crate::cases::topic;
use crate::failure::ensure;
use crate::fixture::{mutex, unlock};
use crate::wire::Fault;
use crate::{Fixture, Outcome};

topic! { "multi_lock":
    a_multi_lock_is_lost_when_one_of_its_names_is,
    a_multi_lock_across_two_clients_is_lost_when_one_of_its_names_is,
    a_dropped_multi_lock_frees_all_its_names,
    a_multi_lock_that_fails_half_way_leaves_nothing,
    a_multi_lock_that_fails_half_way_while_it_waits_leaves_nothing,
    a_multi_lock_is_not_detached,
}

async fn lost_with(f: &Arc<Fixture>, lock: &MultiLock, name: &str) -> Outcome {
    let client = f.client().await?;
    let guard = f.gets(lock).await?;
    f.harness().expire(&mutex(name)?).await?;
    timeout(f.lease() * 2 + f.soon(), guard.lost()).await?;
    ensure!(!guard.is_held(), "held without {name}");
    let unlocked = guard.unlock().await?;
    ensure!(
        matches!(unlocked, Unlocked::Lost(_)),
        "{unlocked:?} without {name}"
    );
    all_are_free(f, &client, &["x", "y", "z"]).await
}

async fn a_multi_lock_is_lost_when_one_of_its_names_is(f: Arc<Fixture>) -> Outcome {
    let client = f.client().await?;
    for name in ["x", "y", "z"] {
        let lock = client.multi_lock(["x", "y", "z"]).ttl(f.lease());
        lost_with(&f, &lock, name).await?;
    }
    Ok(())
}

async fn a_multi_lock_across_two_clients_is_lost_when_one_of_its_names_is(
    f: Arc<Fixture>,
) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    for name in ["x", "y"] {
        let lock = MultiLock::across([a.mutex("x"), b.mutex("y")]).ttl(f.lease());
        lost_with(&f, &lock, name).await?;
    }
    Ok(())
}

async fn a_dropped_multi_lock_frees_all_its_names(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    drop(f.gets(&a.multi_lock(["x", "y"])).await?);
    all_are_free(&f, &b, &["x", "y"]).await?;
    drop(
        f.gets(&MultiLock::across([a.mutex("x"), b.mutex("y")]))
            .await?,
    );
    all_are_free(&f, &b, &["x", "y"]).await
}

/// Each request in turn is lost, or its reply: whatever the outcome, nothing stays.
async fn each_request_fails(f: &Arc<Fixture>, busy: bool) -> Outcome {
    const MOST_REQUESTS: usize = 6;
    let (a, b) = (f.client().await?, f.client().await?);
    let names = ["x", "y", "z"];
    for passed in 0..MOST_REQUESTS {
        for fault in [Fault::Cut, Fault::LostReply] {
            let mut held = None;
            if busy {
                held = Some(f.gets(&b.mutex("y")).await?);
            }
            a.wire().set_after(passed, fault);
            let lock = a.multi_lock(names).wait(Duration::from_millis(300));
            let answer = if busy {
                let call = tokio::spawn(async move { lock.lock().await });
                tokio::time::sleep(Duration::from_millis(30)).await;
                if let Some(held) = held {
                    unlock(held).await?;
                }
                timeout(f.soon(), call).await??
            } else {
                timeout(f.soon(), lock.try_lock())
                    .await?
                    .and_then(|guard| guard.ok_or_else(|| busy_although_free(passed)))
            };
            match answer {
                Ok(guard) => {
                    ensure!(guard.is_held(), "held and not held");
                    drop(guard);
                }
                Err(error) => ensure!(
                    matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Timeout),
                    "request {passed}, {fault:?}: {error}"
                ),
            }
            // The fault may be yet to come, for the release.
            tokio::time::sleep(Duration::from_millis(5)).await;
            a.wire().set(Fault::None);
            all_are_free(f, &b, &names).await?;
        }
    }
    Ok(())
}

fn busy_although_free(passed: usize) -> lockkit_core::Error {
    let message = format!("busy although all are free, after {passed} requests");
    lockkit_core::Error::new(ErrorKind::Unexpected, message)
}

async fn a_multi_lock_that_fails_half_way_leaves_nothing(f: Arc<Fixture>) -> Outcome {
    each_request_fails(&f, false).await
}

async fn a_multi_lock_that_fails_half_way_while_it_waits_leaves_nothing(
    f: Arc<Fixture>,
) -> Outcome {
    each_request_fails(&f, true).await
}

async fn a_multi_lock_is_not_detached(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let guard = f.gets(&a.multi_lock(["x", "y"])).await?;
    let refused = guard.detach(f.long()).await.err();
    ensure!(
        refused.is_some_and(|e| e.kind() == ErrorKind::InvalidArgument),
        "one id for several names"
    );
    all_are_free(&f, &b, &["x", "y"]).await
}
