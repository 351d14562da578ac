//! Operations on segments and on several names, dropped after every number of polls.

use std::sync::Arc;

use lockkit_core::{MultiLock, SegmentedLock, Unlocked};

use super::{WAIT, detaching, free, unlocking, waiting};
use crate::cases::topic;
use crate::failure::ensure;
use crate::fixture::{mutex, unlock};
use crate::{Client, Fixture, Outcome, Round, sweep, sweep_of};

topic! { "cancellation":
    a_lock_of_any_segment_can_be_dropped_at_any_poll [Segmented],
    a_lock_of_any_segment_that_waits_can_be_dropped_at_any_poll [Segmented],
    a_lock_of_any_segment_can_be_dropped_while_it_is_granted [Segmented],
    a_lock_of_a_key_can_be_dropped_at_any_poll [Segmented],
    an_unlock_of_a_segment_can_be_dropped_at_any_poll [Segmented],
    a_detachment_of_a_segment_can_be_dropped_at_any_poll [Segmented],
    setting_the_number_of_segments_can_be_dropped_at_any_poll [Segmented],
    a_multi_lock_can_be_dropped_at_any_poll,
    a_multi_lock_that_waits_can_be_dropped_at_any_poll,
    a_multi_lock_can_be_dropped_while_it_is_granted,
    a_multi_lock_across_two_clients_can_be_dropped_at_any_poll,
    an_unlock_of_a_multi_lock_can_be_dropped_at_any_poll,
    a_request_to_release_can_be_dropped_at_any_poll,
}

fn segment(client: &Client) -> SegmentedLock {
    client.segmented("n", 1)
}

async fn a_lock_of_any_segment_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    free(&f, segment, segment).await
}

async fn a_lock_of_any_segment_that_waits_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    waiting(&f, segment, segment, |c| segment(c).wait(WAIT), None).await
}

async fn a_lock_of_any_segment_can_be_dropped_while_it_is_granted(f: Arc<Fixture>) -> Outcome {
    for polls in 1..4 {
        waiting(&f, segment, segment, segment, Some(polls)).await?;
    }
    Ok(())
}

async fn a_lock_of_a_key_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    let (client, other) = (f.client().await?, f.client().await?);
    for is_held in [false, true] {
        let start = || {
            let (lock, held) = (segment(&client).wait(WAIT), f.gets(&segment(&other)));
            async move {
                let guard = if is_held { Some(held.await?) } else { None };
                let operation = async move { lock.lock_key("k").await };
                Ok(Round::new(operation).after(async move {
                    if let Some(guard) = guard {
                        unlock(guard).await?;
                    }
                    Ok(())
                }))
            }
        };
        sweep_of(&f, segment, start).await?;
    }
    Ok(())
}

async fn an_unlock_of_a_segment_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    unlocking(&f, segment, segment).await
}

async fn a_detachment_of_a_segment_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    detaching(&f, segment, segment).await
}

async fn setting_the_number_of_segments_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    let other = f.client().await?;
    let start = || {
        let (f, other) = (Arc::clone(&f), segment(&other));
        async move {
            let client = f.loose_client().await?;
            let lock = segment(&client);
            let operation = async move { lock.set_segments(2).await };
            Ok(Round::new(operation).after(async move {
                // What was on its way has arrived then, or never will.
                client.close().await?;
                let back = other.set_segments(1).await?;
                ensure!(back.is_some(), "somebody holds or waits");
                Ok(())
            }))
        }
    };
    sweep_of(&f, segment, start).await
}

fn both(client: &Client) -> MultiLock {
    client.multi_lock(["x", "y"])
}

async fn a_multi_lock_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    free(&f, both, both).await
}

async fn a_multi_lock_that_waits_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    for name in ["x", "y"] {
        let holder = |client: &Client| client.mutex(name);
        waiting(&f, both, holder, |c| both(c).wait(WAIT), None).await?;
    }
    Ok(())
}

async fn a_multi_lock_can_be_dropped_while_it_is_granted(f: Arc<Fixture>) -> Outcome {
    for name in ["x", "y"] {
        for polls in 1..4 {
            let holder = |client: &Client| client.mutex(name);
            waiting(&f, both, holder, both, Some(polls)).await?;
        }
    }
    Ok(())
}

async fn a_multi_lock_across_two_clients_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    let second = f.client().await?;
    let across = |client: &Client| MultiLock::across([client.mutex("x"), second.mutex("y")]);
    free(&f, both, across).await?;
    let timed = |client: &Client| across(client).wait(WAIT);
    for name in ["x", "y"] {
        let holder = |client: &Client| client.mutex(name);
        waiting(&f, both, holder, timed, None).await?;
        waiting(&f, both, holder, across, Some(2)).await?;
    }
    Ok(())
}

async fn an_unlock_of_a_multi_lock_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    unlocking(&f, both, both).await?;
    let second = f.client().await?;
    let across = |client: &Client| MultiLock::across([client.mutex("x"), second.mutex("y")]);
    unlocking(&f, both, across).await
}

async fn a_request_to_release_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    let (client, other) = (f.client().await?, f.client().await?);
    let start = || {
        let (held, other) = (f.gets(&client.mutex("n")), other.clone());
        async move {
            let guard = held.await?;
            let n = mutex("n")?;
            let operation = async move { other.request_release(&n).await };
            Ok(Round::new(operation).after(async move {
                let unlocked = guard.unlock().await?;
                ensure!(unlocked == Unlocked::Clean, "asking took the lock away");
                Ok(())
            }))
        }
    };
    sweep(&f, "n", start).await
}
