//! The number of segments that is stored with the name.

use std::sync::Arc;

use lockkit_core::ErrorKind;

use super::segmented;
use crate::cases::topic;
use crate::failure::ensure;
use crate::fixture::unlock;
use crate::{Failure, Fixture, Outcome};

topic! { "segmented":
    another_number_of_segments_than_that_of_the_name_is_refused [Segmented],
    the_number_of_segments_is_changed_only_while_nobody_holds_or_waits [Segmented],
}

async fn another_number_of_segments_than_that_of_the_name_is_refused(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    // While one is held, and while none is.
    for hold in [true, false] {
        let guard = f.gets(&a.segmented("n", 3)).await?;
        let guard = if hold {
            Some(guard)
        } else {
            unlock(guard).await?;
            None
        };
        for client in [&a, &b] {
            for number in [2, 4] {
                let lock = client.segmented("n", number);
                for answer in [
                    lock.try_lock_any().await.err(),
                    lock.lock_key("k").await.err(),
                ] {
                    ensure!(
                        answer.is_some_and(|e| e.kind() == ErrorKind::ConfigMismatch),
                        "{number} segments of 3"
                    );
                }
            }
        }
        let stored = b.inspect(&segmented("n")?).await?.size;
        ensure!(stored == Some(3), "{stored:?} stored");
        if let Some(guard) = guard {
            unlock(guard).await?;
        }
    }
    Ok(())
}

async fn the_number_of_segments_is_changed_only_while_nobody_holds_or_waits(
    f: Arc<Fixture>,
) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let held = f.gets(&a.segmented("n", 1)).await?;
    for client in [&a, &b] {
        let changed = client.segmented("n", 1).set_segments(2).await?;
        ensure!(changed.is_none(), "changed while a segment is held");
    }
    let lock = b.segmented("n", 1);
    let waiting = (f.queues(&a, &segmented("n")?, async move { lock.lock_any().await })).await?;
    unlock(held).await?;
    unlock(waiting.served().await?).await?;
    let changed = b.segmented("n", 1).set_segments(2).await?;
    let lock = changed.ok_or_else(|| Failure::new("not changed while idle"))?;
    ensure!(lock.segments() == 2, "{} segments", lock.segments());
    let guards = [f.gets(&lock).await?, f.gets(&a.segmented("n", 2)).await?];
    let old = a.segmented("n", 1).try_lock_any().await;
    ensure!(
        old.is_err_and(|e| e.kind() == ErrorKind::ConfigMismatch),
        "the old number"
    );
    for guard in guards {
        unlock(guard).await?;
    }
    Ok(())
}
