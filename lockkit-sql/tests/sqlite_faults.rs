//! Death, expiry and eviction.
#![cfg(feature = "sqlite")]

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use lockkit_core::{Attempt, Backend, Claim, Clock, Locker, LossReason, Released, Renewal};
use lockkit_sql::Sqlite;
use support::*;

#[tokio::test]
async fn the_locks_of_a_dead_process_are_free_at_once() {
    let store = Store::new();
    let (one, two) = (store.client().await, store.client().await);
    let (_, grant) = hold(&one, claim("a")).await;
    hold(&one, claim("b")).await;
    let mut waiter = queue(&two, claim("a")).await;
    drop(one);
    let taken = waiter.wait().await;
    assert!(taken.fence > grant.fence);
    hold(&two, at_once("b")).await;
    assert_eq!(store.session_files(), 1, "the dead one's file is gone");
    assert_eq!(store.count("lockkit_session").await, 1);
}

const CHILD: &str = "LOCKKIT_TEST_HOLDER_URL";

/// Run by the test below in a process of its own: holds until it is killed.
#[tokio::test]
async fn child_that_holds() {
    let Ok(url) = std::env::var(CHILD) else {
        return;
    };
    let backend = Sqlite::connect(&url).await.unwrap();
    hold(&backend, claim("a")).await;
    println!("\nholding");
    tokio::time::sleep(LONG).await;
}

#[tokio::test]
async fn a_killed_holder_wakes_one_waiter() {
    let store = Store::new();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_holds", "--nocapture"])
        .env(CHILD, store.url())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "holding"));
    let (one, two) = (store.client().await, store.client().await);
    let mut first = queue(&one, claim("a")).await;
    let mut second = queue(&two, claim("a")).await;
    first.stays_asleep().await;
    child.kill().unwrap();
    child.wait().unwrap();
    first.wait().await;
    second.stays_asleep().await;
    release(&one, &first.id).await;
    second.wait().await;
}

#[tokio::test]
async fn dead_waiters_stall_nobody() {
    let store = Store::new();
    let (one, two, three) = (
        store.client().await,
        store.client().await,
        store.client().await,
    );
    let (holder, _) = hold(&one, claim("a")).await;
    let head = queue(&two, fair("a")).await;
    let mut last = queue(&three, fair("a")).await;
    drop((head, two));
    last.changed().await;
    last.busy().await;
    assert_eq!(inspect(&one, "a").await.waiters.len(), 1);
    release(&one, &holder).await;
    last.wait().await;
    assert_eq!(store.count("lockkit_waiter").await, 0);
}

#[tokio::test]
async fn death_is_found_by_polling_too() {
    let store = Store::with("wakeup=poll");
    let (one, two) = (store.client().await, store.client().await);
    hold(&one, claim("a")).await;
    let mut waiter = queue(&two, claim("a")).await;
    drop(one);
    waiter.wait().await;
}

#[tokio::test]
async fn a_child_that_inherits_the_session_keeps_the_hold() {
    let store = Store::new();
    let (one, two) = (store.client().await, store.client().await);
    let (id, _) = hold(&one, claim("a")).await;
    let inherited = one.session_file(&id).unwrap();
    let mut waiter = queue(&two, claim("a")).await;
    drop(one);
    waiter.stays_asleep().await;
    waiter.busy().await;
    drop(inherited);
    waiter.wait().await;
}

#[tokio::test]
async fn a_stopped_process_loses_its_hold_with_its_lease() {
    let store = Store::new();
    let (one, two) = (store.client().await, store.client().await);
    let short = |claim: Claim| Claim {
        ttl: SHORT,
        ..claim
    };
    let (stopped, grant) = hold(&one, short(claim("a"))).await;
    let mut waiter = Try::enter(&two, claim("a"));
    let attempt = waiter.attempt().await;
    let Attempt::Busy {
        recheck_after: Some(recheck),
    } = attempt
    else {
        panic!("{attempt:?}")
    };
    assert!(recheck <= SHORT + Duration::from_millis(1), "{recheck:?}");
    tokio::time::sleep(recheck + Duration::from_millis(20)).await;
    let taken = waiter.held().await;
    assert!(taken.fence > grant.fence);
    assert_gone(&renew(&one, &stopped).await);
    assert_eq!(release(&one, &stopped).await, Released::NotHeld);
    Try::enter(&one, at_once("a")).busy().await;
    assert_eq!(inspect(&one, "a").await.holders[0].id, waiter.id);
}

#[tokio::test]
async fn renewal_outlives_the_first_lease_but_never_revives() {
    let store = Store::new();
    let (one, two) = (store.client().await, store.client().await);
    let (id, _) = hold(
        &one,
        Claim {
            ttl: SHORT,
            ..claim("a")
        },
    )
    .await;
    for _ in 0..5 {
        tokio::time::sleep(SHORT / 3).await;
        let before = Clock::Boot.now();
        let Renewal::Renewed { sent_at, ttl } = renew(&one, &id).await else {
            panic!("gone")
        };
        assert!(sent_at >= before && ttl == SHORT);
        Try::enter(&two, at_once("a")).busy().await;
    }
    // Over, but nobody has taken it: a renewal that comes now is in time.
    tokio::time::sleep(SHORT * 2).await;
    assert_renewed(&renew(&one, &id).await);
    // Somebody has found the session dead, for another lock.
    let (_, _) = hold(
        &one,
        Claim {
            ttl: SHORT,
            ..claim("b")
        },
    )
    .await;
    tokio::time::sleep(SHORT * 2).await;
    hold(&two, at_once("b")).await;
    for _ in 0..2 {
        assert_gone(&renew(&one, &id).await);
    }
}

#[tokio::test]
async fn an_idle_session_is_made_good_at_the_next_use() {
    let store = Store::new();
    let one = store.client().await;
    let short = || Claim {
        ttl: SHORT,
        ..claim("a")
    };
    let (id, _) = hold(&one, short()).await;
    release(&one, &id).await;
    tokio::time::sleep(SHORT * 2).await;
    let before = Clock::Boot.now();
    let (id, grant) = hold(&one, short()).await;
    assert!(grant.sent_at >= before, "a whole lease is left");
    assert_eq!(store.count("lockkit_session").await, 1);
    release(&one, &id).await;
    // Swept away by somebody.
    sqlx::query("DELETE FROM lockkit_session")
        .execute(&mut store.sql().await)
        .await
        .unwrap();
    let (id, _) = hold(&one, short()).await;
    assert_renewed(&renew(&one, &id).await);
    assert_eq!(store.count("lockkit_session").await, 1);
}

#[tokio::test]
async fn a_detached_hold_lives_by_its_own_expiry() {
    let store = Store::new();
    let (one, two) = (store.client().await, store.client().await);
    let (id, _) = hold(&one, claim("a")).await;
    let mut waiter = queue(&two, claim("a")).await;
    assert_renewed(&one.extend(&id, LONG).await);
    waiter.changed().await;
    drop(one);
    waiter.busy().await;
    assert!(inspect(&two, "a").await.holders[0].detached);
    assert_renewed(&renew(&two, &id).await);
    assert_renewed(&two.extend(&id, SHORT).await);
    tokio::time::sleep(SHORT + Duration::from_millis(50)).await;
    assert_gone(&two.extend(&id, LONG).await);
    assert_gone(&renew(&two, &id).await);
    assert!(inspect(&two, "a").await.holders.is_empty());
    assert_eq!(release(&two, &id).await, Released::NotHeld);
    waiter.wait().await;
}

#[tokio::test]
async fn a_detached_hold_is_released_from_anywhere() {
    let store = Store::new();
    let (one, two) = (store.client().await, store.client().await);
    let (id, _) = hold(&one, claim("a")).await;
    assert_renewed(&two.extend(&id, LONG).await);
    let mut waiter = queue(&one, claim("a")).await;
    assert_eq!(release(&two, &id).await, Released::Done);
    waiter.wait().await;
}

#[tokio::test]
async fn the_evicted_are_told_at_once() {
    let store = Store::new();
    for from_the_same_process in [true, false] {
        let locker = Locker::new(store.client().await).unwrap();
        let other = Locker::new(store.client().await).unwrap();
        let kept = locker.mutex("kept").lock().await.unwrap();
        let guard = locker.mutex("a").lock().await.unwrap();
        let evictor = if from_the_same_process {
            &locker
        } else {
            &other
        };
        assert_eq!(evictor.evict(guard.id()).await.unwrap(), Released::Done);
        let reason = tokio::time::timeout(PATIENCE, guard.lost())
            .await
            .expect("not told");
        assert_eq!(reason, LossReason::Gone);
        assert!(kept.is_held());
        let next = other.mutex("a").try_lock().await.unwrap().unwrap();
        assert!(next.fence() > guard.fence());
        assert_eq!(evictor.evict(guard.id()).await.unwrap(), Released::NotHeld);
        drop((guard, next, kept));
        locker.close().await.unwrap();
        other.close().await.unwrap();
        assert_eq!(store.count("lockkit_eviction").await, 0);
    }
}
