//! Operations on semaphores and latches, dropped after every number of polls.

use std::sync::Arc;

use lockkit_core::{Primitive, Semaphore};

use super::{WAIT, detaching, free, unlocking, waiting};
use crate::cases::topic;
use crate::failure::ensure;
use crate::fixture::resource;
use crate::{Client, Fixture, Outcome, Round, sweep, sweep_of};

topic! { "cancellation":
    an_acquisition_of_permits_can_be_dropped_at_any_poll [Semaphore],
    an_acquisition_of_permits_that_waits_can_be_dropped_at_any_poll [Semaphore],
    an_acquisition_of_permits_can_be_dropped_while_it_is_granted [Semaphore],
    giving_permits_back_can_be_dropped_at_any_poll [Semaphore],
    a_detachment_of_permits_can_be_dropped_at_any_poll [Semaphore],
    setting_a_limit_can_be_dropped_at_any_poll [Semaphore],
    setting_a_latch_can_be_dropped_at_any_poll [Latch],
    counting_a_latch_down_can_be_dropped_at_any_poll [Latch],
    waiting_for_a_latch_can_be_dropped_at_any_poll [Latch],
    waiting_for_a_latch_can_be_dropped_while_it_opens [Latch],
}

fn all(client: &Client) -> Semaphore {
    client.semaphore("n", 3).permits(3)
}

fn two(client: &Client) -> Semaphore {
    client.semaphore("n", 3).permits(2)
}

async fn an_acquisition_of_permits_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    free(&f, all, two).await
}

async fn an_acquisition_of_permits_that_waits_can_be_dropped_at_any_poll(
    f: Arc<Fixture>,
) -> Outcome {
    waiting(&f, all, two, |client| two(client).wait(WAIT), None).await
}

async fn an_acquisition_of_permits_can_be_dropped_while_it_is_granted(f: Arc<Fixture>) -> Outcome {
    for polls in 1..4 {
        waiting(&f, all, two, two, Some(polls)).await?;
    }
    Ok(())
}

async fn giving_permits_back_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    unlocking(&f, all, two).await
}

async fn a_detachment_of_permits_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    detaching(&f, all, two).await
}

async fn setting_a_limit_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    let other = f.client().await?;
    let start = || {
        let (f, other) = (Arc::clone(&f), other.clone());
        async move {
            let client = f.loose_client().await?;
            let _ = all(&other).set_limit(2).await?;
            let lock = all(&client);
            Ok(
                Round::new(async move { lock.set_limit(5).await }).after(async move {
                    // What was on its way has arrived then, or never will.
                    client.close().await?;
                    let size = other
                        .inspect(&resource(Primitive::Semaphore, "n")?)
                        .await?
                        .size;
                    ensure!(matches!(size, Some(2 | 5)), "{size:?} is neither");
                    let _ = all(&other).set_limit(3).await?;
                    Ok(())
                }),
            )
        }
    };
    sweep_of(&f, all, start).await
}

async fn setting_a_latch_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    let other = f.client().await?;
    for reset in [false, true] {
        let start = || {
            let (f, other) = (Arc::clone(&f), other.latch("n"));
            async move {
                let client = f.loose_client().await?;
                let latch = client.latch("n");
                let operation = async move {
                    if reset {
                        latch.reset().await
                    } else {
                        latch.try_set(1).await
                    }
                };
                let after = async move {
                    // What was on its way has arrived then, or never will.
                    client.close().await?;
                    // It may have been set or not: count down what there is.
                    match other.count().await? {
                        Some(1) => ensure!(other.count_down("x").await? == 0, "not counted"),
                        Some(0) | None => {}
                        left => return Err(crate::Failure::new(format!("{left:?} are left"))),
                    }
                    Ok(())
                };
                Ok(Round::new(operation).after(after))
            }
        };
        sweep(&f, "n", start).await?;
    }
    Ok(())
}

async fn counting_a_latch_down_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    let (client, other) = (f.client().await?, f.client().await?);
    let start = || {
        let (latch, other) = (client.latch("n"), other.latch("n"));
        async move {
            ensure!(other.try_set(2).await?, "not set");
            Ok(
                Round::new(async move { latch.count_down("x").await }).after(async move {
                    // It may have counted or not, but once.
                    let left = other.count_down("x").await?;
                    ensure!(left == 1, "{left} of 2 are left after one came");
                    other.count_down("y").await?;
                    Ok(())
                }),
            )
        }
    };
    sweep(&f, "n", start).await
}

async fn waiting_for_a_latch_can_be_dropped_at_any_poll(f: Arc<Fixture>) -> Outcome {
    let (client, other) = (f.client().await?, f.client().await?);
    for is_open in [false, true] {
        let start = || {
            let (latch, other) = (client.latch("n"), other.latch("n"));
            async move {
                ensure!(other.try_set(1).await?, "not set");
                if is_open {
                    other.count_down("x").await?;
                }
                let operation = async move { latch.wait_at_most(WAIT).await };
                Ok(Round::new(operation).after(async move {
                    other.count_down("x").await?;
                    Ok(())
                }))
            }
        };
        sweep(&f, "n", start).await?;
    }
    Ok(())
}

async fn waiting_for_a_latch_can_be_dropped_while_it_opens(f: Arc<Fixture>) -> Outcome {
    let (client, other) = (f.client().await?, f.client().await?);
    for polls in 1..4 {
        let start = || {
            let (latch, other) = (client.latch("n"), other.latch("n"));
            async move {
                ensure!(other.try_set(1).await?, "not set");
                let opens = other.clone();
                let opening = async move {
                    opens.count_down("x").await?;
                    Ok(())
                };
                let round = Round::new(async move { latch.wait().await }).meanwhile(polls, opening);
                Ok(round.after(async move {
                    other.count_down("x").await?;
                    Ok(())
                }))
            }
        };
        sweep(&f, "n", start).await?;
    }
    Ok(())
}
