//! All names, or none.

use std::sync::Arc;
use std::time::Duration;

use lockkit_core::{ErrorKind, MultiLock, Resource};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::all_are_free;
use crate::cases::topic;
use crate::failure::ensure;
use crate::fixture::{mutex, unlock};
use crate::{Fixture, Outcome};

topic! { "multi_lock":
    all_names_are_held_or_none_is,
    each_of_the_names_excludes_who_locks_it_alone,
    names_that_are_given_twice_are_held_once_and_in_order,
    a_multi_lock_waits_for_a_name_that_somebody_holds,
    a_multi_lock_that_waits_in_vain_holds_nothing_when_its_time_is_up,
    multi_locks_in_opposite_orders_never_stop_each_other,
    multi_locks_across_two_clients_never_stop_each_other,
    a_multi_lock_across_two_clients_is_all_or_nothing,
    a_multi_lock_of_no_names_is_refused,
}

async fn all_names_are_held_or_none_is(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let names = ["x", "y", "z"];
    for busy in names {
        let held = f.gets(&b.mutex(busy)).await?;
        let tried = a.multi_lock(names).try_lock().await?;
        ensure!(tried.is_none(), "{busy} has two holders");
        for name in names {
            let snapshot = b.inspect(&mutex(name)?).await?;
            let holders = usize::from(name == busy);
            ensure!(
                snapshot.holders.len() == holders && snapshot.waiters.is_empty(),
                "a refused multi-lock left something: {snapshot:?}"
            );
        }
        unlock(held).await?;
    }
    let tried = a.multi_lock(names).try_lock().await?;
    let guard = tried.ok_or_else(|| crate::Failure::new("all are free and refused"))?;
    ensure!(guard.is_held(), "held and not held");
    unlock(guard).await?;
    all_are_free(&f, &b, &names).await
}

async fn each_of_the_names_excludes_who_locks_it_alone(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let guard = f.gets(&a.multi_lock(["x", "y", "z"])).await?;
    for client in [&a, &b] {
        for name in ["x", "y", "z"] {
            let tried = client.mutex(name).try_lock().await?;
            ensure!(tried.is_none(), "{name} has two holders");
        }
        let tried = client.multi_lock(["w", "y"]).try_lock().await?;
        ensure!(tried.is_none(), "y has two holders");
        unlock(f.gets(&client.mutex("w")).await?).await?;
    }
    unlock(guard).await?;
    all_are_free(&f, &b, &["x", "y", "z"]).await
}

async fn names_that_are_given_twice_are_held_once_and_in_order(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let guard = f.gets(&a.multi_lock(["z", "x", "z", "y", "x"])).await?;
    let held: Vec<&Resource> = guard.holds().map(|(id, _)| id.resource()).collect();
    let names: Vec<&str> = held.iter().map(|r| r.name().as_str()).collect();
    ensure!(names == ["x", "y", "z"], "{names:?} are held");
    for (id, fence) in guard.holds() {
        let holders = b.inspect(id.resource()).await?.holders;
        ensure!(
            holders.len() == 1 && holders[0].id == *id && holders[0].fence == fence,
            "{id} is not held once: {holders:?}"
        );
    }
    unlock(guard).await?;
    all_are_free(&f, &b, &["x", "y", "z"]).await
}

async fn a_multi_lock_waits_for_a_name_that_somebody_holds(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let names = ["x", "y", "z"];
    for busy in names {
        let held = f.gets(&b.mutex(busy)).await?;
        let lock = a.multi_lock(names);
        let waiting = (f.queues(&b, &mutex(busy)?, async move { lock.lock().await })).await?;
        ensure!(waiting.waits().await, "{busy} has two holders");
        unlock(held).await?;
        unlock(waiting.served().await?).await?;
    }
    all_are_free(&f, &b, &names).await
}

async fn a_multi_lock_that_waits_in_vain_holds_nothing_when_its_time_is_up(
    f: Arc<Fixture>,
) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let held = f.gets(&b.mutex("y")).await?;
    let (since, wait) = (Instant::now(), Duration::from_millis(150));
    let answer = a.multi_lock(["x", "y", "z"]).wait(wait).lock().await;
    let waited = since.elapsed();
    ensure!(
        answer.is_err_and(|e| e.kind() == ErrorKind::Timeout),
        "y has two holders"
    );
    ensure!(waited >= wait, "gave up early, after {waited:?}");
    let bound = f.by_clock(wait * 2, Duration::from_secs(4));
    ensure!(waited <= bound, "one deadline for all, not {waited:?}");
    all_are_free(&f, &b, &["x", "z"]).await?;
    unlock(held).await?;
    all_are_free(&f, &b, &["y"]).await
}

/// Tasks that hold overlapping names in any order, until all are done.
async fn crowd(f: &Fixture, locks: Vec<MultiLock>, rounds: usize) -> Outcome {
    let mut tasks = JoinSet::new();
    for lock in locks {
        tasks.spawn(async move {
            for _ in 0..rounds {
                let guard = lock.lock().await?;
                tokio::time::sleep(Duration::from_millis(1)).await;
                ensure!(guard.is_held(), "lost by another");
                unlock(guard).await?;
            }
            Outcome::Ok(())
        });
    }
    let all = async {
        while let Some(done) = tasks.join_next().await {
            done??;
        }
        Outcome::Ok(())
    };
    let bound = f.soon() * 4;
    timeout(bound, all)
        .await
        .unwrap_or_else(|_| Err(crate::Failure::new("they stopped each other")))
}

async fn multi_locks_in_opposite_orders_never_stop_each_other(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let orders = [
        ["x", "y", "z"],
        ["z", "y", "x"],
        ["y", "z", "w"],
        ["w", "x", "y"],
    ];
    let locks = orders.iter().flat_map(|names| {
        let both = [&a, &b];
        both.map(|client| client.multi_lock(names))
    });
    crowd(&f, locks.collect(), 5).await?;
    all_are_free(&f, &a, &["w", "x", "y", "z"]).await
}

async fn multi_locks_across_two_clients_never_stop_each_other(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let one = || MultiLock::across([a.mutex("x"), b.mutex("y"), a.mutex("z")]);
    let other = || MultiLock::across([b.mutex("y"), a.mutex("z"), a.mutex("x")]);
    crowd(&f, vec![one(), other(), one(), other()], 4).await?;
    all_are_free(&f, &a, &["x", "y", "z"]).await
}

async fn a_multi_lock_across_two_clients_is_all_or_nothing(f: Arc<Fixture>) -> Outcome {
    let (a, b, c) = (f.client().await?, f.client().await?, f.client().await?);
    let lock = MultiLock::across([a.mutex("x"), b.mutex("y")]);
    for busy in ["x", "y"] {
        let held = f.gets(&c.mutex(busy)).await?;
        ensure!(lock.try_lock().await?.is_none(), "{busy} has two holders");
        let timed = lock.clone().wait(Duration::from_millis(60));
        ensure!(
            timed
                .lock()
                .await
                .is_err_and(|e| e.kind() == ErrorKind::Timeout),
            "{busy} has two holders"
        );
        let free = if busy == "x" { "y" } else { "x" };
        all_are_free(&f, &c, &[free]).await?;
        unlock(held).await?;
    }
    let guard = f.gets(&lock).await?;
    for name in ["x", "y"] {
        let tried = c.mutex(name).try_lock().await?;
        ensure!(tried.is_none(), "{name} has two holders");
    }
    unlock(guard).await?;
    all_are_free(&f, &c, &["x", "y"]).await
}

async fn a_multi_lock_of_no_names_is_refused(f: Arc<Fixture>) -> Outcome {
    let client = f.client().await?;
    let none: [&str; 0] = [];
    let lock = client.multi_lock(none);
    for error in [lock.lock().await.err(), lock.try_lock().await.err()] {
        ensure!(
            error.is_some_and(|e| e.kind() == ErrorKind::InvalidArgument),
            "nothing was locked"
        );
    }
    Ok(())
}
