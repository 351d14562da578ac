//! Locks and tries, dropped after every number of polls.

use std::sync::Arc;

use lockkit_core::Unlocked;

use super::WAIT;
use crate::cases::topic;
use crate::failure::ensure;
use crate::fixture::{mutex, unlock};
use crate::{Failure, Fixture, Outcome, Round, sweep};

topic! { "cancellation":
    a_lock_that_is_free_can_be_dropped_at_any_poll,
    a_lock_that_waits_can_be_dropped_at_any_poll,
    a_lock_can_be_dropped_while_it_is_granted,
    a_fair_lock_that_waits_can_be_dropped_at_any_poll [Fair],
    a_fair_lock_can_be_dropped_while_it_is_granted [Fair],
    a_dropped_waiter_does_not_take_the_wake_up_with_it [Line],
    a_try_on_a_free_name_can_be_dropped_at_any_poll,
    a_try_on_a_held_name_can_be_dropped_at_any_poll,
    a_lock_with_a_deadline_can_be_dropped_at_any_poll,
    a_lock_that_is_not_polled_holds_nobody_up,
}

async fn a_lock_that_is_free_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    let client = f.client().await?;
    let start = || {
        let lock = client.mutex("n");
        async move { Ok(Round::new(async move { lock.lock().await })) }
    };
    sweep(&f, "n", start).await
}

/// How a contended lock is swept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Contended {
    /// The holder stays until the waiter was dropped, or gave up.
    Withdrawn,
    /// The holder unlocks after the waiter was polled this often.
    Granted(usize),
}

async fn sweep_contended(f: &Arc<Fixture>, fair: bool, how: Contended) -> Outcome {
    let (holder, waiter) = (f.client().await?, f.client().await?);
    let start = || {
        let (f, holder, waiter) = (Arc::clone(f), holder.clone(), waiter.clone());
        async move {
            let guard = f.gets(&holder.mutex("n")).await?;
            let mut lock = waiter.mutex("n");
            if fair {
                lock = lock.fair();
            }
            if let Contended::Granted(polls) = how {
                let operation = async move { lock.lock().await };
                let unlock = async move {
                    unlock(guard).await?;
                    Ok(())
                };
                return Ok(Round::new(operation).meanwhile(polls, unlock));
            }
            let operation = async move { lock.wait(WAIT).lock().await };
            Ok(Round::new(operation).after(async move {
                f.until(&holder, "n", "without waiters", |s| s.waiters.is_empty())
                    .await?;
                let unlocked = guard.unlock().await?;
                ensure!(unlocked == Unlocked::Clean, "the holder lost it");
                Ok(())
            }))
        }
    };
    sweep(f, "n", start).await
}

async fn a_lock_that_waits_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    sweep_contended(&f, false, Contended::Withdrawn).await
}

async fn a_lock_can_be_dropped_while_it_is_granted(f: Arc<Fixture>) -> Outcome {
    for polls in 1..4 {
        sweep_contended(&f, false, Contended::Granted(polls)).await?;
    }
    Ok(())
}

async fn a_fair_lock_that_waits_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    sweep_contended(&f, true, Contended::Withdrawn).await
}

async fn a_fair_lock_can_be_dropped_while_it_is_granted(f: Arc<Fixture>) -> Outcome {
    for polls in 1..4 {
        sweep_contended(&f, true, Contended::Granted(polls)).await?;
    }
    Ok(())
}

async fn a_dropped_waiter_does_not_take_the_wake_up_with_it(f: Arc<Fixture>) -> Outcome {
    let (a, b, c) = (f.client().await?, f.client().await?, f.client().await?);
    let start = || {
        let (f, a, b, c) = (Arc::clone(&f), a.clone(), b.clone(), c.clone());
        async move {
            let guard = f.gets(&a.mutex("n")).await?;
            let lock = b.mutex("n");
            // Another one waits behind the one that is dropped, and must be served.
            let behind = Arc::new(tokio::sync::Mutex::new(None));
            let waits = Arc::clone(&behind);
            let there = Arc::clone(&f);
            let queue_and_unlock = async move {
                let lock = c.mutex("n");
                let served = tokio::spawn(async move { lock.lock().await });
                there
                    .until(&c, "n", "a waiter more", |s| s.waiters.len() >= 2)
                    .await?;
                *waits.lock().await = Some(served);
                unlock(guard).await?;
                Ok(())
            };
            let after = async move {
                let Some(served) = behind.lock().await.take() else {
                    return Ok(());
                };
                unlock(tokio::time::timeout(f.soon(), served).await???).await?;
                Ok(())
            };
            Ok(Round::new(async move { lock.lock().await })
                .meanwhile(3, queue_and_unlock)
                .after(after))
        }
    };
    sweep(&f, "n", start).await
}

async fn a_try_on_a_free_name_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    let client = f.client().await?;
    let start = || {
        let lock = client.mutex("n");
        async move { Ok(Round::new(async move { lock.try_lock().await })) }
    };
    sweep(&f, "n", start).await
}

async fn a_try_on_a_held_name_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    let (holder, other) = (f.client().await?, f.client().await?);
    let start = || {
        let (f, holder, lock) = (Arc::clone(&f), holder.clone(), other.mutex("n"));
        async move {
            let guard = f.gets(&holder.mutex("n")).await?;
            Ok(
                Round::new(async move { lock.try_lock().await }).after(async move {
                    let waiters = holder.inspect(&mutex("n")?).await?.waiters;
                    ensure!(
                        waiters.is_empty(),
                        "a try took a place in line: {waiters:?}"
                    );
                    unlock(guard).await?;
                    Ok(())
                }),
            )
        }
    };
    sweep(&f, "n", start).await
}

async fn a_lock_with_a_deadline_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    let client = f.client().await?;
    let start = || {
        let lock = client.mutex("n").wait(f.soon());
        async move { Ok(Round::new(async move { lock.lock().await })) }
    };
    sweep(&f, "n", start).await
}

async fn a_lock_that_is_not_polled_holds_nobody_up(f: Arc<Fixture>) -> Outcome {
    let (client, other) = (f.client().await?, f.client().await?);
    for polls in 1..5 {
        let start = || {
            let (f, lock, other) = (Arc::clone(&f), client.mutex("n"), other.mutex("other"));
            // As in a `select!` whose other arm has something to do.
            let others_go_on = async move {
                let passed = f.passes(&other).await;
                passed
                    .map(drop)
                    .map_err(|e| Failure::new(format!("the others: {e}")))
            };
            let operation = async move { lock.lock().await };
            async move { Ok(Round::new(operation).meanwhile(polls, others_go_on)) }
        };
        sweep(&f, "n", start).await?;
    }
    Ok(())
}
