//! Every operation, dropped after every number of polls.

mod acquiring;
mod counting;
mod holding;
mod several;
mod sharing;

use std::sync::Arc;
use std::time::Duration;

use lockkit_core::{DistributedLock, Snapshot, Unlocked};

use crate::failure::ensure;
use crate::fixture::unlock;
use crate::{Case, Client, Fixture, Outcome, Round, sweep_of};

pub(super) fn cases() -> Vec<Case> {
    [
        acquiring::cases(),
        holding::cases(),
        sharing::cases(),
        counting::cases(),
        several::cases(),
    ]
    .concat()
}

/// Long enough for several polls, short enough to be waited out.
const WAIT: Duration = Duration::from_millis(40);

/// Sweeps the locking, and a try, of what is free; `whole` meets every hold of it.
async fn free<W, L>(
    f: &Arc<Fixture>,
    whole: impl Fn(&Client) -> W + Send + Sync,
    lock: impl Fn(&Client) -> L + Send + Sync,
) -> Outcome
where
    W: DistributedLock + Clone,
    L: DistributedLock + Clone + 'static,
{
    let client = f.client().await?;
    let start = || {
        let lock = lock(&client);
        async move { Ok(Round::new(async move { lock.lock().await })) }
    };
    sweep_of(f, &whole, start).await?;
    let start = || {
        let lock = lock(&client);
        async move { Ok(Round::new(async move { lock.try_lock().await })) }
    };
    sweep_of(f, &whole, start).await
}

/// Sweeps a lock that has to wait for `holder`, and a try: until it gives up, or until it was
/// polled so often and the holder unlocks.
async fn waiting<W, H, L>(
    f: &Arc<Fixture>,
    whole: impl Fn(&Client) -> W + Send + Sync,
    holder: impl Fn(&Client) -> H + Send + Sync,
    lock: impl Fn(&Client) -> L + Send + Sync,
    granted: Option<usize>,
) -> Outcome
where
    W: DistributedLock + Clone,
    H: DistributedLock + Clone,
    L: DistributedLock + Clone + 'static,
{
    let (holds, waits) = (f.client().await?, f.client().await?);
    for tries in [false, true] {
        let start = || {
            let (f, holds) = (Arc::clone(f), holds.clone());
            let (held, lock) = (f.gets(&holder(&holds)), lock(&waits));
            async move {
                let guard = held.await?;
                let n = guard.id().resource().clone();
                let operation = async move {
                    if tries {
                        lock.try_lock().await
                    } else {
                        lock.lock().await.map(Some)
                    }
                };
                let round = Round::new(operation);
                if let Some(polls) = granted {
                    return Ok(round.meanwhile(polls, unlock(guard)));
                }
                Ok(round.after(async move {
                    let without = |s: &Snapshot| s.waiters.is_empty();
                    f.until_of(&holds, &n, "without waiters", without).await?;
                    let unlocked = guard.unlock().await?;
                    ensure!(unlocked == Unlocked::Clean, "the holder lost it");
                    Ok(())
                }))
            }
        };
        sweep_of(f, &whole, start).await?;
    }
    Ok(())
}

/// Sweeps the unlocking.
async fn unlocking<W, L>(
    f: &Arc<Fixture>,
    whole: impl Fn(&Client) -> W + Send + Sync,
    lock: impl Fn(&Client) -> L + Send + Sync,
) -> Outcome
where
    W: DistributedLock + Clone,
    L: DistributedLock + Clone,
{
    let client = f.client().await?;
    let start = || {
        let held = f.gets(&lock(&client));
        async move { Ok(Round::new(held.await?.unlock())) }
    };
    sweep_of(f, whole, start).await
}

/// Sweeps the detaching, and the release by id after it.
async fn detaching<W, L>(
    f: &Arc<Fixture>,
    whole: impl Fn(&Client) -> W + Send + Sync,
    lock: impl Fn(&Client) -> L + Send + Sync,
) -> Outcome
where
    W: DistributedLock + Clone,
    L: DistributedLock + Clone,
{
    let (client, other) = (f.client().await?, f.client().await?);
    let ttl = f.long();
    let start = || {
        let (held, other) = (f.gets(&lock(&client)), other.clone());
        async move {
            let guard = held.await?;
            // Only a detachment that was answered leaves a hold; whoever got the id releases it.
            Ok(Round::new(async move {
                let id = guard.detach(ttl).await?;
                other.release(&id).await
            }))
        }
    };
    sweep_of(f, whole, start).await
}
