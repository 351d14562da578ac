//! What is done with a hold, dropped after every number of polls.

use std::sync::Arc;
use std::time::Duration;

use lockkit_core::{Owner, Unlocked};

use crate::cases::topic;
use crate::failure::ensure;
use crate::fixture::mutex;
use crate::{Failure, Fixture, Outcome, Round, sweep};

topic! { "cancellation":
    an_unlock_can_be_dropped_at_any_poll,
    an_unlock_that_is_not_polled_holds_nobody_up,
    a_detachment_can_be_dropped_at_any_poll,
    a_renewal_by_id_can_be_dropped_at_any_poll,
    a_release_by_id_can_be_dropped_at_any_poll,
    an_inspection_can_be_dropped_at_any_poll,
    a_listing_can_be_dropped_at_any_poll,
    an_eviction_can_be_dropped_at_any_poll,
    work_under_a_guard_can_be_dropped_at_any_poll,
    a_reentrant_lock_can_be_dropped_at_any_poll,
    closing_can_be_dropped_at_any_poll,
}

async fn an_unlock_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    let client = f.client().await?;
    let start = || {
        let (f, client) = (Arc::clone(&f), client.clone());
        async move {
            let guard = f.gets(&client.mutex("n")).await?;
            Ok(Round::new(guard.unlock()))
        }
    };
    sweep(&f, "n", start).await
}

async fn a_detachment_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    let (client, other) = (f.client().await?, f.client().await?);
    let start = || {
        let (f, client, other) = (Arc::clone(&f), client.clone(), other.clone());
        async move {
            let guard = f.gets(&client.mutex("n")).await?;
            let ttl = f.long();
            // Only a detachment that was answered leaves a hold; whoever got the id releases it.
            Ok(Round::new(async move {
                let id = guard.detach(ttl).await?;
                other.release(&id).await
            }))
        }
    };
    sweep(&f, "n", start).await
}

async fn a_renewal_by_id_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    let (client, other) = (f.client().await?, f.client().await?);
    let start = || {
        let (f, client, other) = (Arc::clone(&f), client.clone(), other.clone());
        async move {
            let id = f.gets(&client.mutex("n")).await?.detach(f.long()).await?;
            let (ttl, renewed) = (f.long(), id.clone());
            let operation = async move { other.renew(&renewed, ttl).await };
            Ok(Round::new(operation).after(async move {
                let held = client.inspect(id.resource()).await?.holders;
                ensure!(
                    held.len() == 1 && held[0].id == id,
                    "the hold is gone: {held:?}"
                );
                client.release(&id).await?;
                Ok(())
            }))
        }
    };
    sweep(&f, "n", start).await
}

async fn a_release_by_id_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    let (client, other) = (f.client().await?, f.client().await?);
    let start = || {
        let (f, client, other) = (Arc::clone(&f), client.clone(), other.clone());
        async move {
            let id = f.gets(&client.mutex("n")).await?.detach(f.long()).await?;
            let released = id.clone();
            let operation = async move { other.release(&released).await };
            Ok(Round::new(operation).after(async move {
                // One that was never polled has not begun.
                client.release(&id).await?;
                Ok(())
            }))
        }
    };
    sweep(&f, "n", start).await
}

async fn an_inspection_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    let (client, other) = (f.client().await?, f.client().await?);
    let start = || {
        let (f, client, other) = (Arc::clone(&f), client.clone(), other.clone());
        async move {
            let guard = f.gets(&client.mutex("n")).await?;
            let resource = mutex("n")?;
            let operation = async move { other.inspect(&resource).await };
            Ok(Round::new(operation).after(async move {
                let unlocked = guard.unlock().await?;
                ensure!(unlocked == Unlocked::Clean, "the holder lost it");
                Ok(())
            }))
        }
    };
    sweep(&f, "n", start).await
}

async fn a_listing_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    let (client, other) = (f.client().await?, f.client().await?);
    let start = || {
        let (f, client, other) = (Arc::clone(&f), client.clone(), other.clone());
        async move {
            let guard = f.gets(&client.mutex("n")).await?;
            let operation = async move { other.list("").await };
            Ok(Round::new(operation).after(async move {
                let unlocked = guard.unlock().await?;
                ensure!(unlocked == Unlocked::Clean, "the holder lost it");
                Ok(())
            }))
        }
    };
    sweep(&f, "n", start).await
}

async fn an_eviction_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    let (client, other) = (f.client().await?, f.client().await?);
    let start = || {
        let (f, client, other) = (Arc::clone(&f), client.clone(), other.clone());
        async move {
            let guard = f.gets(&client.mutex("n")).await?;
            let id = guard.id().clone();
            let operation = async move { other.evict(&id).await };
            Ok(Round::new(operation).after(async move {
                // It may have taken effect or not, but the guard ends either way.
                let _either = guard.unlock().await?;
                Ok(())
            }))
        }
    };
    sweep(&f, "n", start).await
}

async fn work_under_a_guard_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    let client = f.client().await?;
    let start = || {
        let (f, client) = (Arc::clone(&f), client.clone());
        async move {
            let guard = Arc::new(f.gets(&client.mutex("n")).await?);
            let holds = Arc::clone(&guard);
            let operation = async move {
                let work = async {
                    for _ in 0..3 {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                };
                holds.while_held(work).await
            };
            Ok(Round::new(operation).after(async move {
                ensure!(guard.is_held(), "dropping the work ended the hold");
                drop(guard);
                Ok(())
            }))
        }
    };
    sweep(&f, "n", start).await
}

async fn a_reentrant_lock_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    let (client, other) = (f.client().await?, f.client().await?);
    let start = || {
        let (f, client, other) = (Arc::clone(&f), client.clone(), other.clone());
        async move {
            let owner = Owner::new();
            let outer = f.gets(&client.mutex("n").owner(&owner)).await?;
            let inner = client.mutex("n").owner(&owner);
            Ok(
                Round::new(async move { inner.lock().await }).after(async move {
                    ensure!(
                        outer.is_held(),
                        "dropping the inner lock ended the outer hold"
                    );
                    ensure!(other.mutex("n").try_lock().await?.is_none(), "two holders");
                    let unlocked = outer.unlock().await?;
                    ensure!(
                        unlocked == Unlocked::Clean,
                        "dropping the inner lock lost the outer"
                    );
                    Ok(())
                }),
            )
        }
    };
    sweep(&f, "n", start).await
}

async fn closing_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    let start = || {
        let f = Arc::clone(&f);
        async move {
            let client = f.loose_client().await?;
            let guard = f.gets(&client.mutex("n")).await?;
            let closing = client.clone();
            Ok(
                Round::new(async move { closing.close().await }).after(async move {
                    client.close().await?;
                    ensure!(!guard.is_held(), "held by a closed locker");
                    Ok(())
                }),
            )
        }
    };
    sweep(&f, "n", start).await
}

async fn an_unlock_that_is_not_polled_holds_nobody_up(f: Arc<Fixture>) -> Outcome {
    let (client, other) = (f.client().await?, f.client().await?);
    for polls in 1..4 {
        let start = || {
            let (f, client, other) = (Arc::clone(&f), client.clone(), other.mutex("other"));
            async move {
                let guard = f.gets(&client.mutex("n")).await?;
                let others_go_on = async move {
                    let passed = f.passes(&other).await;
                    passed
                        .map(drop)
                        .map_err(|e| Failure::new(format!("the others: {e}")))
                };
                Ok(Round::new(guard.unlock()).meanwhile(polls, others_go_on))
            }
        };
        sweep(&f, "n", start).await?;
    }
    Ok(())
}
