//! From lock to unlock, and the other ways in which a hold ends.

use std::sync::Arc;
use std::time::Duration;

use lockkit_core::{
    DistributedLock, ErrorKind, LossReason, Released, Snapshot, Unlocked, valid_until,
};
use tokio::time::timeout;

use super::topic;
use crate::failure::ensure;
use crate::fixture::{mutex, unlock};
use crate::{Failure, Fixture, Outcome};

topic! { "lifecycle":
    a_lock_is_used_through_the_trait,
    a_dropped_guard_frees_the_name,
    a_guard_dropped_on_a_thread_without_runtime_frees_the_name,
    a_panic_frees_the_name,
    a_runtime_that_ends_under_a_guard_does_no_harm [RealTime],
    a_late_unlock_leaves_the_new_holder_alone,
    a_late_drop_leaves_the_new_holder_alone,
    closing_tells_the_guards_and_frees_the_names,
    closing_withdraws_those_who_wait,
    a_closed_locker_refuses_everything,
    an_eviction_frees_the_name_and_tells_the_holder,
    inspection_shows_holder_and_waiters [Line],
    a_listing_has_what_begins_with_the_prefix_and_nothing_idle,
    the_service_says_that_it_is_well,
}

async fn a_lock_is_used_through_the_trait(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let lock: Box<dyn DistributedLock> = Box::new(a.mutex("n"));
    let guard = lock.lock().await?;
    ensure!(b.mutex("n").try_lock().await?.is_none(), "two holders");
    ensure!(lock.try_lock().await?.is_none(), "two holders");
    ensure!(
        lock.unlock(guard).await? == Unlocked::Clean,
        "the hold was lost"
    );
    let guard = lock
        .try_lock()
        .await?
        .ok_or_else(|| Failure::new("busy after the unlock"))?;
    ensure!(guard.remaining() > Duration::ZERO, "a hold without time");
    let latest = valid_until(f.harness().descriptor().clock.now(), f.long());
    ensure!(
        guard.valid_until() <= latest,
        "believed for longer than its lease"
    );
    Ok(())
}

async fn a_dropped_guard_frees_the_name(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    for _ in 0..5 {
        drop(f.gets(&a.mutex("n")).await?);
        f.passes(&b.mutex("n")).await?;
    }
    Ok(())
}

async fn a_guard_dropped_on_a_thread_without_runtime_frees_the_name(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let guard = f.gets(&a.mutex("n")).await?;
    let dropped = std::thread::spawn(move || drop(guard)).join();
    ensure!(dropped.is_ok(), "the drop panicked");
    f.passes(&b.mutex("n")).await?;
    Ok(())
}

async fn a_panic_frees_the_name(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let guard = f.gets(&a.mutex("n")).await?;
    let task = tokio::spawn(async move {
        let _guard = guard;
        // Unwinds like a panic, without the message of one in the report.
        std::panic::resume_unwind(Box::new("on purpose"));
    });
    ensure!(task.await.is_err(), "the task did not panic");
    f.passes(&b.mutex("n")).await?;
    Ok(())
}

async fn a_runtime_that_ends_under_a_guard_does_no_harm(f: Arc<Fixture>) -> Outcome {
    let (lease, there) = (f.lease(), Arc::clone(&f));
    let thread = std::thread::spawn(move || -> Outcome {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let guard = runtime.block_on(async {
            let client = there.loose_client().await?;
            Outcome::Ok(client.mutex("n").ttl(lease).lock().await?)
        })?;
        drop(runtime);
        drop(guard);
        Ok(())
    });
    let ended = tokio::task::spawn_blocking(|| thread.join()).await?;
    ended.map_err(|_| Failure::new("dropping the guard panicked"))??;
    f.crashed();
    // Nobody was there to send the release: the lease ends it.
    let other = f.client().await?;
    unlock(other.mutex("n").wait(f.lease() + f.soon()).lock().await?).await?;
    Ok(())
}

async fn a_late_unlock_leaves_the_new_holder_alone(f: Arc<Fixture>) -> Outcome {
    let (a, b, c) = (f.client().await?, f.client().await?, f.client().await?);
    let stale = f.gets(&a.mutex("n")).await?;
    f.harness().expire(&mutex("n")?).await?;
    let fresh = f.gets(&b.mutex("n")).await?;
    let unlocked = stale.unlock().await?;
    ensure!(
        matches!(unlocked, Unlocked::Lost(_)),
        "a lost hold was released: {unlocked:?}"
    );
    ensure!(
        a.mutex("n").try_lock().await?.is_none(),
        "a late unlock let a second holder in"
    );
    // Closing proves that the release was sent, now or in the background.
    a.close().await?;
    ensure!(
        c.mutex("n").try_lock().await?.is_none(),
        "a late unlock let a second holder in"
    );
    ensure!(
        fresh.unlock().await? == Unlocked::Clean,
        "a late unlock freed somebody else's hold"
    );
    Ok(())
}

async fn a_late_drop_leaves_the_new_holder_alone(f: Arc<Fixture>) -> Outcome {
    let (a, b, c) = (f.client().await?, f.client().await?, f.client().await?);
    let stale = f.gets(&a.mutex("n")).await?;
    f.harness().expire(&mutex("n")?).await?;
    let fresh = f.gets(&b.mutex("n")).await?;
    drop(stale);
    // Closing proves that the release of the dropped guard was sent.
    a.close().await?;
    ensure!(
        c.mutex("n").try_lock().await?.is_none(),
        "a late drop let a second holder in"
    );
    ensure!(
        fresh.unlock().await? == Unlocked::Clean,
        "a late drop freed somebody else's hold"
    );
    Ok(())
}

async fn closing_tells_the_guards_and_frees_the_names(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let (x, y) = (f.gets(&a.mutex("x")).await?, f.gets(&a.mutex("y")).await?);
    let token = x.cancellation_token();
    a.close().await?;
    ensure!(!x.is_held() && !y.is_held(), "held by a closed locker");
    ensure!(token.is_cancelled(), "the guard's token was not cancelled");
    let reason = x.lost().await;
    ensure!(
        reason == LossReason::Closed,
        "lost for another reason: {reason}"
    );
    // Every release has been answered, so the names are free at once.
    for name in ["x", "y"] {
        let guard = b.mutex(name).try_lock().await?;
        ensure!(guard.is_some(), "{name} is busy after the close");
    }
    ensure!(
        y.unlock().await? == Unlocked::Lost(LossReason::Closed),
        "unlocked after the close"
    );
    a.close().await?;
    Ok(())
}

async fn closing_withdraws_those_who_wait(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let guard = f.gets(&b.mutex("n")).await?;
    let lock = a.mutex("n");
    let waiter = tokio::spawn(async move { lock.lock().await });
    f.stand(&b, &mutex("n")?, 1).await?;
    a.close().await?;
    let Err(error) = timeout(f.soon(), waiter).await?? else {
        return Err(Failure::new("locked by a closed locker"));
    };
    ensure!(error.kind() == ErrorKind::Closed, "{error}");
    let waiters = b.inspect(&mutex("n")?).await?.waiters;
    ensure!(
        waiters.is_empty(),
        "still in line after the close: {waiters:?}"
    );
    unlock(guard).await?;
    Ok(())
}

async fn a_closed_locker_refuses_everything(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let id = f.gets(&b.mutex("n")).await?.detach(f.long()).await?;
    a.close().await?;
    let refusals = [
        a.mutex("m").lock().await.err(),
        a.mutex("m").try_lock().await.err(),
        a.renew(&id, f.long()).await.err(),
        a.release(&id).await.err(),
        a.evict(&id).await.err(),
        a.inspect(id.resource()).await.err(),
        a.list("").await.err(),
        a.probe().await.err(),
    ];
    for (i, refusal) in refusals.iter().enumerate() {
        let kind = refusal.as_ref().map(lockkit_core::Error::kind);
        ensure!(
            kind == Some(ErrorKind::Closed),
            "operation {i}: {refusal:?}"
        );
    }
    ensure!(
        b.release(&id).await? == Released::Done,
        "a closed locker released a hold"
    );
    Ok(())
}

async fn an_eviction_frees_the_name_and_tells_the_holder(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let guard = f.gets(&a.mutex("n").ttl(f.lease())).await?;
    let snapshot = b.inspect(&mutex("n")?).await?;
    let holder = snapshot
        .holders
        .first()
        .ok_or_else(|| Failure::new("no holder is shown"))?;
    ensure!(
        b.evict(&holder.id).await? == Released::Done,
        "there was nothing to evict"
    );
    let next = b.mutex("n").try_lock().await?;
    let next = next.ok_or_else(|| Failure::new("busy after the eviction"))?;
    ensure!(
        f.rises(guard.fence(), next.fence()),
        "{} after {}",
        next.fence(),
        guard.fence()
    );
    let reason = timeout(f.lease() + f.soon(), guard.lost()).await?;
    ensure!(
        reason == LossReason::Gone,
        "lost for another reason: {reason}"
    );
    let unlocked = guard.unlock().await?;
    ensure!(
        matches!(unlocked, Unlocked::Lost(_)),
        "unlocked after an eviction: {unlocked:?}"
    );
    ensure!(
        next.unlock().await? == Unlocked::Clean,
        "the victim freed its successor's hold"
    );
    Ok(())
}

async fn inspection_shows_holder_and_waiters(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let resource = mutex("n")?;
    ensure!(
        b.inspect(&resource).await?.is_idle(),
        "somebody is there already"
    );
    let guard = f.gets(&a.mutex("n").label("first")).await?;
    let mut waiters = Vec::new();
    for (i, label) in ["second", "third"].into_iter().enumerate() {
        let lock = b.mutex("n").label(label);
        waiters.push(tokio::spawn(async move { lock.lock().await }));
        f.until(&a, "n", "one waiter more", |s| s.waiters.len() == i + 1)
            .await?;
    }
    let Snapshot {
        holders,
        waiters: places,
        fence,
        ..
    } = a.inspect(&resource).await?;
    ensure!(
        fence == Some(guard.fence()),
        "the highest fence is {fence:?}"
    );
    let [holder] = &holders[..] else {
        return Err(Failure::new(format!("not one holder: {holders:?}")));
    };
    ensure!(holder.id == *guard.id(), "another id: {holder:?}");
    ensure!(holder.fence == guard.fence(), "another fence: {holder:?}");
    ensure!(holder.label.text() == "first", "another label: {holder:?}");
    ensure!(
        holder.label.pid() == std::process::id(),
        "another process: {holder:?}"
    );
    ensure!(
        holder.remaining <= f.long() && !holder.remaining.is_zero(),
        "{holder:?}"
    );
    ensure!(!holder.detached, "detached: {holder:?}");
    let labels: Vec<&str> = places.iter().map(|place| place.label.text()).collect();
    ensure!(labels == ["second", "third"], "not in line: {places:?}");
    unlock(guard).await?;
    for waiter in waiters {
        unlock(timeout(f.soon(), waiter).await???).await?;
    }
    Ok(())
}

async fn a_listing_has_what_begins_with_the_prefix_and_nothing_idle(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let mut guards = Vec::new();
    for name in ["a/2", "a/1", "a%", "A/1", "b_", "b%", "bx", "é/1"] {
        guards.push(f.gets(&a.mutex(name)).await?);
    }
    f.passes(&a.mutex("a/idle")).await?;
    // The second line of each pair would match if `%`, `_` or case were taken for more than they
    // are.
    let expected: [(&str, &[&str]); 7] = [
        ("", &["A/1", "a%", "a/1", "a/2", "b%", "b_", "bx", "é/1"]),
        ("a", &["a%", "a/1", "a/2"]),
        ("a/", &["a/1", "a/2"]),
        ("a%", &["a%"]),
        ("b_", &["b_"]),
        ("é", &["é/1"]),
        ("c", &[]),
    ];
    for (prefix, names) in expected {
        let list = b.list(prefix).await?;
        let listed: Vec<&str> = list.iter().map(|s| s.resource.name().as_str()).collect();
        ensure!(
            listed == names,
            "{prefix:?}: {listed:?} instead of {names:?}"
        );
    }
    Ok(())
}

async fn the_service_says_that_it_is_well(f: Arc<Fixture>) -> Outcome {
    let client = f.client().await?;
    let facts = client.probe().await?;
    ensure!(!facts.is_empty(), "nothing to say");
    Ok(())
}
