//! What readers and writers are told about the last write.

use std::sync::Arc;

use lockkit_core::Fence;
use tokio::time::timeout;

use super::rw;
use crate::cases::topic;
use crate::failure::ensure;
use crate::fixture::unlock;
use crate::{Fixture, Outcome};

topic! { "read_write":
    each_write_has_a_greater_fence_and_a_read_that_of_the_last_write [ReadWrite, Fences],
    a_write_that_ended_badly_is_still_the_last_one [ReadWrite, Fences],
}

async fn each_write_has_a_greater_fence_and_a_read_that_of_the_last_write(
    f: Arc<Fixture>,
) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let read = f.passes(&a.read_write("n").read()).await?;
    ensure!(read == Fence::new(0), "{read} before any write");
    let mut last = Fence::new(0);
    for client in [&a, &b, &a, &b] {
        let write = f.passes(&client.read_write("n").write()).await?;
        ensure!(write > last, "{write} after {last}");
        last = write;
        // However long nobody has been there, and however many others wrote elsewhere.
        f.passes(&a.read_write("other").write()).await?;
        let readers = [
            f.gets(&a.read_write("n").read()).await?,
            f.gets(&b.read_write("n").read()).await?,
        ];
        for reader in readers {
            ensure!(
                reader.fence() == last,
                "a read has {}, the last write {last}",
                reader.fence()
            );
        }
    }
    Ok(())
}

async fn a_write_that_ended_badly_is_still_the_last_one(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let brief = a.read_write("n").ttl(f.lease()).without_watchdog().write();
    let expired = f.gets(&brief).await?;
    let reader = timeout(f.lease() * 2 + f.soon(), b.read_write("n").read().lock()).await??;
    ensure!(
        reader.fence() == expired.fence(),
        "a read has {}, the last write {}",
        reader.fence(),
        expired.fence()
    );
    unlock(reader).await?;

    let evicted = f.gets(&a.read_write("n").write()).await?;
    ensure!(evicted.fence() > expired.fence(), "a fence fell");
    f.harness().expire(&rw("n")?).await?;
    let reader = f.gets(&b.read_write("n").read()).await?;
    ensure!(
        reader.fence() == evicted.fence(),
        "a read has {}, the last write {}",
        reader.fence(),
        evicted.fence()
    );
    unlock(reader).await?;
    let next = f.passes(&b.read_write("n").write()).await?;
    ensure!(next > evicted.fence(), "{next} after {}", evicted.fence());
    Ok(())
}
