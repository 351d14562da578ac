//! Holds that outlive the client that took them.

use std::sync::Arc;
use std::time::Duration;

use lockkit_core::{ErrorKind, HoldId, Owner, Released};
use tokio::time::{sleep, timeout};

use super::topic;
use crate::failure::ensure;
use crate::fixture::{mutex, unlock};
use crate::{Failure, Fixture, Outcome};

topic! { "detach":
    a_detached_hold_outlives_its_client_and_is_released_from_elsewhere,
    a_detached_hold_lives_by_its_own_expiry,
    a_detached_hold_is_renewed_from_elsewhere,
    a_detached_hold_that_ran_out_is_not_renewed,
    a_detached_hold_keeps_its_fence_and_says_that_it_is_detached,
    an_owner_with_other_guards_does_not_detach,
}

async fn a_detached_hold_outlives_its_client_and_is_released_from_elsewhere(
    f: Arc<Fixture>,
) -> Outcome {
    let (a, b) = (f.loose_client().await?, f.client().await?);
    let guard = f.gets(&a.mutex("n").ttl(f.lease())).await?;
    let id = guard.detach(f.long()).await?;
    a.close().await?;
    sleep(f.lease() * 2).await;
    ensure!(
        b.mutex("n").try_lock().await?.is_none(),
        "ended with its client"
    );
    // As a shell script would keep it.
    let id: HoldId = id.to_string().parse()?;
    ensure!(b.release(&id).await? == Released::Done, "it was gone");
    ensure!(b.release(&id).await? == Released::NotHeld, "released twice");
    f.passes(&b.mutex("n")).await?;
    Ok(())
}

async fn a_detached_hold_lives_by_its_own_expiry(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let id = f.gets(&a.mutex("n")).await?.detach(f.lease()).await?;
    ensure!(b.mutex("n").try_lock().await?.is_none(), "two holders");
    // Its client goes on renewing other things.
    let other = f.gets(&a.mutex("other").ttl(f.lease())).await?;
    unlock(timeout(f.lease() * 2 + f.soon(), b.mutex("n").lock()).await??).await?;
    ensure!(other.is_held(), "the neighbour was lost");
    ensure!(
        b.release(&id).await? == Released::NotHeld,
        "released what had run out"
    );
    Ok(())
}

async fn a_detached_hold_is_renewed_from_elsewhere(f: Arc<Fixture>) -> Outcome {
    let (a, b, c) = (
        f.loose_client().await?,
        f.client().await?,
        f.client().await?,
    );
    let id = f.gets(&a.mutex("n")).await?.detach(f.lease()).await?;
    a.close().await?;
    for _ in 0..5 {
        sleep(f.lease() / 2).await;
        b.renew(&id, f.lease()).await?;
        ensure!(c.mutex("n").try_lock().await?.is_none(), "two holders");
    }
    b.renew(&id, f.long()).await?;
    sleep(f.lease() * 2).await;
    ensure!(
        c.mutex("n").try_lock().await?.is_none(),
        "a longer renewal was cut short"
    );
    // A shorter one takes effect as well.
    b.renew(&id, f.lease()).await?;
    unlock(timeout(f.lease() * 2 + f.soon(), c.mutex("n").lock()).await??).await
}

async fn a_detached_hold_that_ran_out_is_not_renewed(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let id = f.gets(&a.mutex("n")).await?.detach(f.lease()).await?;
    let next = timeout(f.lease() * 2 + f.soon(), b.mutex("n").lock()).await??;
    let Err(error) = a.renew(&id, f.long()).await else {
        return Err(Failure::new("renewed beside another holder"));
    };
    ensure!(error.kind() == ErrorKind::Lost, "{error}");
    unlock(next).await?;
    let again = a.renew(&id, f.long()).await;
    ensure!(
        again.is_err_and(|e| e.kind() == ErrorKind::Lost),
        "a hold came back"
    );
    ensure!(
        a.release(&id).await? == Released::NotHeld,
        "a hold came back"
    );
    f.passes(&b.mutex("n")).await?;
    Ok(())
}

async fn a_detached_hold_keeps_its_fence_and_says_that_it_is_detached(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let guard = f.gets(&a.mutex("n").label("script")).await?;
    let fence = guard.fence();
    let id = guard.detach(f.long()).await?;
    let snapshot = b.inspect(&mutex("n")?).await?;
    let [holder] = &snapshot.holders[..] else {
        return Err(Failure::new(format!("not one holder: {snapshot:?}")));
    };
    ensure!(
        holder.id == id && holder.fence == fence,
        "another hold: {holder:?}"
    );
    ensure!(holder.detached, "not detached: {holder:?}");
    ensure!(holder.label.text() == "script", "another label: {holder:?}");
    ensure!(
        holder.remaining > f.long() / 2,
        "{:?} remain",
        holder.remaining
    );
    b.release(&id).await?;
    let next = f.passes(&b.mutex("n")).await?;
    ensure!(f.rises(fence, next), "{next} after {fence}");
    Ok(())
}

async fn an_owner_with_other_guards_does_not_detach(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let me = Owner::new();
    let lock = a.mutex("n").owner(&me);
    let (outer, inner) = (f.gets(&lock).await?, f.gets(&lock).await?);
    let refused = inner.detach(f.long()).await;
    ensure!(
        refused.is_err_and(|e| e.kind() == ErrorKind::InvalidArgument),
        "detached a part"
    );
    ensure!(outer.is_held(), "the refusal ended the hold");
    let id = outer.detach(f.long()).await?;
    sleep(Duration::from_millis(20)).await;
    ensure!(b.mutex("n").try_lock().await?.is_none(), "two holders");
    b.release(&id).await?;
    Ok(())
}
