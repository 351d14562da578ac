//! Holding, releasing and standing in line.
#![cfg(feature = "sqlite")]

mod support;

use lockkit_core::{Attempt, AttemptId, Backend, Claim, HoldId, Mode, Order, Released, Renewal};
use support::*;

#[tokio::test]
async fn one_holds_and_the_next_gets_a_greater_fence() {
    let store = Store::new();
    let (one, two) = (store.client().await, store.client().await);
    let (first, grant) = hold(&one, claim("a")).await;
    assert_eq!(grant.ttl, LONG);
    Try::enter(&two, at_once("a")).busy().await;
    hold(&two, claim("b")).await;
    assert_eq!(release(&one, &first).await, Released::Done);
    let (_, later) = hold(&two, at_once("a")).await;
    assert!(later.fence > grant.fence);
}

#[tokio::test]
async fn a_second_attempt_of_one_claim_gives_the_same_grant() {
    let store = Store::new();
    let backend = store.client().await;
    for claim in [claim("a"), at_once("b"), fair("c")] {
        let mut attempt = Try::enter(&backend, claim.clone());
        let grant = attempt.held().await;
        assert_eq!(attempt.held().await, grant);
        let mut lost_reply = Try::enter(&backend, claim);
        lost_reply.ticket.attempt().await.unwrap();
        let Attempt::Held(again) = lost_reply.attempt().await else {
            panic!("not ours")
        };
        assert_eq!(again.fence, grant.fence);
    }
}

#[tokio::test]
async fn only_the_owner_releases() {
    let store = Store::new();
    let (one, two) = (store.client().await, store.client().await);
    let (id, _) = hold(&one, claim("a")).await;
    let foreign = HoldId::new(id.resource().clone(), AttemptId::random());
    assert_eq!(release(&one, &foreign).await, Released::NotHeld);
    assert_gone(&renew(&one, &foreign).await);
    Try::enter(&two, at_once("a")).busy().await;
    assert_eq!(
        release(&two, &id).await,
        Released::Done,
        "by id, from any client"
    );
    assert_eq!(release(&one, &id).await, Released::NotHeld);
    assert_gone(&renew(&one, &id).await);
}

#[tokio::test]
async fn a_batch_is_released_in_order_of_the_request() {
    let store = Store::new();
    let backend = store.client().await;
    let mut ids = Vec::new();
    for name in ["a", "b", "c"] {
        ids.push(hold(&backend, claim(name)).await.0);
    }
    ids.insert(1, HoldId::new(resource("a"), AttemptId::random()));
    let released: Vec<_> = backend
        .release(&ids)
        .await
        .into_iter()
        .map(|released| released.unwrap())
        .collect();
    let wanted = [
        Released::Done,
        Released::NotHeld,
        Released::Done,
        Released::Done,
    ];
    assert_eq!(released, wanted);
    assert!(backend.list("").await.unwrap().is_empty());
}

#[tokio::test]
async fn a_failing_try_writes_nothing() {
    let store = Store::new();
    let (one, two) = (store.client().await, store.client().await);
    hold(&one, claim("a")).await;
    let mut sql = store.sql().await;
    let version = async |sql: &mut sqlx::SqliteConnection| -> i64 {
        let (version,): (i64,) = sqlx::query_as("PRAGMA data_version")
            .fetch_one(sql)
            .await
            .unwrap();
        version
    };
    let before = version(&mut sql).await;
    for _ in 0..3 {
        Try::enter(&two, at_once("a")).busy().await;
        Try::enter(
            &two,
            Claim {
                order: Order::Fair,
                ..at_once("a")
            },
        )
        .busy()
        .await;
    }
    assert_eq!(version(&mut sql).await, before);
    assert_eq!(store.session_files(), 1);
}

#[tokio::test]
async fn fair_waiters_are_served_in_order_and_each_release_wakes_one() {
    let store = Store::new();
    let clients = [store.client().await, store.client().await];
    let (mut holder, _) = hold(&clients[0], claim("a")).await;
    let mut line = Vec::new();
    for i in 0..6 {
        line.push(queue(&clients[i % 2], fair("a")).await);
    }
    let seen: Vec<_> = inspect(&clients[0], "a")
        .await
        .waiters
        .into_iter()
        .map(|waiter| waiter.id)
        .collect();
    assert_eq!(
        seen,
        line.iter()
            .map(|attempt| attempt.id.clone())
            .collect::<Vec<_>>()
    );
    let mut fence = None;
    while !line.is_empty() {
        assert_eq!(release(&clients[1], &holder).await, Released::Done);
        let mut next = line.remove(0);
        let grant = next.wait().await;
        assert!(Some(grant.fence) > fence);
        fence = Some(grant.fence);
        if let Some(second) = line.first_mut() {
            second.stays_asleep().await;
        }
        holder = next.id;
    }
    release(&clients[0], &holder).await;
    assert!(inspect(&clients[0], "a").await.is_idle());
}

#[tokio::test]
async fn a_release_hands_over_even_to_those_who_would_let_others_pass() {
    let store = Store::new();
    let (one, two) = (store.client().await, store.client().await);
    let (holder, _) = hold(&one, claim("a")).await;
    let mut waiter = queue(&two, claim("a")).await;
    release(&one, &holder).await;
    // Nobody can be quicker, and the waiter only has to read that it holds.
    Try::enter(&one, at_once("a")).busy().await;
    waiter.wait().await;
}

#[tokio::test]
async fn a_fair_newcomer_does_not_pass() {
    let store = Store::new();
    let (one, two) = (store.client().await, store.client().await);
    let (holder, _) = hold(&one, claim("a")).await;
    let mut first = queue(&two, claim("a")).await;
    release(&one, &holder).await;
    // Handed over already.
    Try::enter(
        &one,
        Claim {
            wait: false,
            ..fair("a")
        },
    )
    .busy()
    .await;
    let mut second = queue(&one, fair("a")).await;
    first.wait().await;
    release(&two, &first.id).await;
    second.wait().await;
}

#[tokio::test]
async fn a_withdrawn_place_stalls_nobody() {
    let store = Store::new();
    let (one, two) = (store.client().await, store.client().await);
    let (holder, _) = hold(&one, claim("a")).await;
    let first = queue(&one, claim("a")).await;
    let second = queue(&two, fair("a")).await;
    let mut third = queue(&two, fair("a")).await;
    assert_eq!(release(&two, &second.id).await, Released::Done);
    assert_eq!(release(&two, &second.id).await, Released::NotHeld);
    release(&one, &holder).await;
    // `first` was handed the lock, and goes away instead of using it.
    assert_eq!(release(&one, &first.id).await, Released::Done);
    third.wait().await;
    release(&two, &third.id).await;
    assert_eq!(store.count("lockkit_waiter").await, 0);
}

#[tokio::test]
async fn a_release_between_two_attempts_is_not_missed() {
    let store = Store::new();
    let (one, two) = (store.client().await, store.client().await);
    for _ in 0..20 {
        let (holder, _) = hold(&one, claim("a")).await;
        let mut waiter = Try::enter(&two, claim("a"));
        let (attempt, _) = tokio::join!(waiter.attempt(), release(&one, &holder));
        if !matches!(attempt, Attempt::Held(_)) {
            waiter.wait().await;
        }
        release(&two, &waiter.id).await;
    }
}

#[tokio::test]
async fn waiters_of_one_process_wake_each_other_without_files() {
    let store = Store::new();
    let backend = store.client().await;
    let (mut holder, _) = hold(&backend, claim("a")).await;
    for order in [Order::Fair, Order::Barging] {
        let mut waiter = queue(
            &backend,
            Claim {
                order,
                ..claim("a")
            },
        )
        .await;
        release(&backend, &holder).await;
        waiter.wait().await;
        holder = waiter.id;
    }
}

#[tokio::test]
async fn polling_does_the_same() {
    let store = Store::with("wakeup=poll");
    let (one, two) = (store.client().await, store.client().await);
    let probe = one.probe().await.unwrap();
    assert!(probe.contains(&("wake_up", "poll".into())));
    let (holder, _) = hold(&one, claim("a")).await;
    let mut first = queue(&two, fair("a")).await;
    let mut second = queue(&two, fair("a")).await;
    release(&one, &holder).await;
    first.wait().await;
    second.stays_asleep().await;
    drop(one);
    release(&two, &first.id).await;
    second.wait().await;
}

#[tokio::test]
async fn renewing_many_is_one_row_and_tells_which_are_gone() {
    let store = Store::new();
    let backend = store.client().await;
    let mut ids = Vec::new();
    for i in 0..1200 {
        ids.push(hold(&backend, claim(&format!("a{i}"))).await.0);
    }
    let waiter = queue(&backend, claim("a7")).await;
    ids.push(waiter.id.clone());
    // Taken away behind our back.
    let mut sql = store.sql().await;
    sqlx::query("UPDATE lockkit_lock SET attempt = x'00' WHERE key = 'mutex/a1100.'")
        .execute(&mut sql)
        .await
        .unwrap();
    let renewed = backend.renew(&ids).await;
    for (i, renewal) in renewed.iter().enumerate() {
        if i == 1100 {
            assert_gone(renewal)
        } else {
            assert_renewed(renewal)
        }
    }
    let (beats,): (i64,) = sqlx::query_as("SELECT sum(ver) FROM lockkit_session")
        .fetch_one(&mut sql)
        .await
        .unwrap();
    assert_eq!(beats, 1);
}

#[tokio::test]
async fn what_is_not_offered_is_refused_before_any_request() {
    let store = Store::new();
    let backend = store.client().await;
    assert!(
        backend
            .enter(Claim {
                mode: Mode::Shared,
                ..claim("a")
            })
            .is_err()
    );
    assert!(
        backend
            .enter(Claim {
                ttl: SHORT / 2,
                ..claim("a")
            })
            .is_err()
    );
    backend.close().await.unwrap();
    assert!(backend.enter(claim("a")).is_err());
    backend.close().await.unwrap();
}

#[tokio::test]
async fn closing_leaves_nothing() {
    let store = Store::new();
    let backend = store.client().await;
    let (id, _) = hold(&backend, claim("a")).await;
    release(&backend, &id).await;
    backend.close().await.unwrap();
    assert_eq!(store.session_files(), 0);
    assert_eq!(store.count("lockkit_session").await, 0);
    assert!(matches!(renew(&backend, &id).await, Renewal::Unknown(_)));
}
