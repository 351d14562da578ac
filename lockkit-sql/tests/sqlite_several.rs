//! What several may hold: who enters, who is woken, and what is written.
#![cfg(feature = "sqlite")]

mod support;

use std::time::Duration;

use lockkit_core::{
    Attempt, Backend, Claim, Converted, ErrorKind, Grant, Mode, Pick, Primitive, Released, Together,
};
use support::*;

fn rw(name: &str, mode: Mode) -> Claim {
    claim_of(Primitive::ReadWrite, name, mode)
}

fn permits(name: &str, count: u32, limit: u32) -> Claim {
    claim_of(Primitive::Semaphore, name, Mode::Permits { count, limit })
}

fn any_segment(name: &str, of: u32) -> Claim {
    let pick = Pick::Any { prefer: 0 };
    claim_of(Primitive::Segmented, name, Mode::Segment { pick, of })
}

#[tokio::test]
async fn readers_share_the_fence_of_the_last_writer() {
    let store = Store::new();
    let (one, two) = (store.client().await, store.client().await);
    let (early, none) = hold(&one, rw("a", Mode::Shared)).await;
    assert_eq!(none.fence.get(), 0, "nobody wrote yet");
    release(&one, &early).await;
    let (writer, grant) = hold(&one, rw("a", Mode::Exclusive)).await;
    Try::enter(&two, at_once_of(rw("a", Mode::Shared)))
        .busy()
        .await;
    release(&one, &writer).await;
    let (_, read) = hold(&one, rw("a", Mode::Shared)).await;
    let (other, again) = hold(&two, rw("a", Mode::Shared)).await;
    assert_eq!((read.fence, again.fence), (grant.fence, grant.fence));
    assert_eq!(release(&one, &other).await, Released::Done, "just that one");
    assert_eq!(inspect_of(&one, &other).await.holders.len(), 1);
    assert_eq!(release(&one, &other).await, Released::NotHeld);
}

#[tokio::test]
async fn only_one_of_two_readers_becomes_the_writer() {
    let store = Store::new();
    let (one, two) = (store.client().await, store.client().await);
    let (first, _) = hold(&one, rw("a", Mode::Shared)).await;
    let (second, _) = hold(&two, rw("a", Mode::Shared)).await;
    let (a, b) = tokio::join!(
        one.convert(&first, Mode::Exclusive),
        two.convert(&second, Mode::Exclusive)
    );
    assert_eq!((a.unwrap(), b.unwrap()), (Converted::Busy, Converted::Busy));
    release(&two, &second).await;
    let converted = one.convert(&first, Mode::Exclusive).await.unwrap();
    let Converted::Done(fence) = converted else {
        panic!("{converted:?}")
    };
    assert!(fence.get() > 0);
    let mut reader = queue(&two, rw("a", Mode::Shared)).await;
    assert_eq!(
        one.convert(&first, Mode::Shared).await.unwrap(),
        Converted::Done(fence)
    );
    assert_eq!(reader.wait().await.fence, fence);
    assert_eq!(
        two.convert(&second, Mode::Shared).await.unwrap(),
        Converted::NotHeld
    );
}

#[tokio::test]
async fn a_busy_try_of_any_kind_writes_nothing() {
    let store = Store::new();
    let (one, two) = (store.client().await, store.client().await);
    hold(&one, rw("a", Mode::Exclusive)).await;
    hold(&one, permits("a", 2, 2)).await;
    hold(&one, any_segment("a", 1)).await;
    hold(&one, claim("a")).await;
    let latch = claim_of(Primitive::Latch, "a", Mode::Shared);
    assert!(one.set_latch(&latch.resource, 1).await.unwrap());
    let mut sql = store.sql().await;
    let before = data_version(&mut sql).await;
    let busy = [
        rw("a", Mode::Shared),
        rw("a", Mode::Exclusive),
        permits("a", 1, 2),
        any_segment("a", 1),
        latch,
    ];
    for claim in busy {
        Try::enter(&two, at_once_of(claim)).busy().await;
    }
    let both = [at_once("a"), at_once("b")];
    assert_eq!(two.attempt_all(&both).await.unwrap(), Together::Busy);
    let size = two
        .enter(at_once_of(permits("a", 1, 3)))
        .unwrap()
        .attempt()
        .await;
    assert_eq!(size.unwrap_err().kind(), ErrorKind::ConfigMismatch);
    assert_eq!(data_version(&mut sql).await, before);
    assert_eq!(store.session_files(), 1);
}

#[tokio::test]
async fn a_release_wakes_only_those_it_admits() {
    let store = Store::new();
    let mut clients = Vec::new();
    for _ in 0..5 {
        clients.push(store.client().await);
    }
    let (holder, _) = hold(&clients[0], permits("a", 2, 3)).await;
    let (_kept, _) = hold(&clients[0], permits("a", 1, 3)).await;
    let mut line = Vec::new();
    for client in &clients[1..] {
        line.push(queue(client, permits("a", 1, 3)).await);
    }
    release(&clients[0], &holder).await;
    for admitted in &mut line[..2] {
        admitted.wait().await;
    }
    for waiter in &mut line[2..] {
        waiter.stays_asleep().await;
    }
}

#[tokio::test]
async fn a_thousand_who_wait_some_of_whom_give_up_keep_their_order() {
    const MANY: usize = 1000;
    let store = Store::new();
    let backend = store.client().await;
    let (mut holder, _) = hold(&backend, permits("a", 1, 1)).await;
    let mut line = Vec::new();
    for _ in 0..MANY {
        let mut waiter = Try::enter(&backend, permits("a", 1, 1));
        waiter.busy().await;
        line.push(waiter);
    }
    let gone: Vec<_> = line
        .iter()
        .step_by(5)
        .map(|waiter| waiter.id.clone())
        .collect();
    for released in backend.release(&gone).await {
        assert_eq!(released.unwrap(), Released::Done);
    }
    let seen = inspect_of(&backend, &holder).await.waiters;
    assert_eq!(seen.len(), MANY - gone.len());
    let kept = line.into_iter().filter(|waiter| !gone.contains(&waiter.id));
    for (mut waiter, seen) in kept.zip(seen) {
        assert_eq!(waiter.id, seen.id);
        release(&backend, &holder).await;
        waiter.held().await;
        holder = waiter.id;
    }
    release(&backend, &holder).await;
    assert_eq!(store.count("lockkit_waiter").await, 0);
    assert_eq!(store.count("lockkit_holder").await, 0);
}

#[tokio::test]
async fn segments_are_resized_only_while_idle_and_permits_at_any_time() {
    let store = Store::new();
    let (one, two) = (store.client().await, store.client().await);
    let (segment, grant) = hold(&one, any_segment("a", 2)).await;
    assert_eq!(grant.segment, Some(0));
    assert_eq!(hold(&two, any_segment("a", 2)).await.1.segment, Some(1));
    assert!(!one.set_size(segment.resource(), 3).await.unwrap());
    drop(two);
    release(&one, &segment).await;
    assert!(
        one.set_size(segment.resource(), 3).await.unwrap(),
        "the dead hold nothing"
    );
    let (permit, _) = hold(&one, permits("a", 1, 2)).await;
    let mut waiter = queue(&one, permits("a", 2, 2)).await;
    assert!(one.set_size(permit.resource(), 1).await.unwrap());
    waiter.changed().await;
    let told = waiter.ticket.attempt().await.unwrap_err();
    assert_eq!(told.kind(), ErrorKind::ConfigMismatch);
    release(&one, &waiter.id).await;
    assert_eq!(store.count("lockkit_waiter").await, 0);
}

#[tokio::test]
async fn detached_permits_run_out_each_for_itself() {
    let store = Store::new();
    let (one, two) = (store.client().await, store.client().await);
    let (first, _) = hold(&one, permits("a", 1, 2)).await;
    let (second, _) = hold(&one, permits("a", 1, 2)).await;
    assert_renewed(&one.extend(&first, SHORT).await);
    assert_renewed(&two.extend(&second, LONG).await);
    drop(one);
    let mut waiter = Try::enter(&two, permits("a", 1, 2));
    let Attempt::Busy { recheck_after } = waiter.attempt().await else {
        panic!("both are held")
    };
    assert!(recheck_after.unwrap() <= SHORT + Duration::from_millis(1));
    tokio::time::sleep(SHORT + Duration::from_millis(50)).await;
    waiter.held().await;
    assert_gone(&two.extend(&first, LONG).await);
    assert_renewed(&renew(&two, &second).await);
    assert_eq!(release(&two, &first).await, Released::NotHeld);
    assert_eq!(release(&two, &second).await, Released::Done);
}

#[tokio::test]
async fn who_waited_when_a_latch_opened_passes_though_it_is_set_anew() {
    let store = Store::new();
    let (one, two) = (store.client().await, store.client().await);
    let latch = claim_of(Primitive::Latch, "a", Mode::Shared);
    let resource = latch.resource.clone();
    let name = lockkit_core::LockName::new("someone").unwrap();
    let mut waiter = queue(&two, latch.clone()).await;
    let gone = store.client().await;
    let forgotten = queue(&gone, claim_of(Primitive::Latch, "a", Mode::Shared)).await;
    assert!(one.set_latch(&resource, 1).await.unwrap());
    assert!(!one.set_latch(&resource, 2).await.unwrap());
    waiter.stays_asleep().await;
    drop((forgotten, gone));
    // The file is closed by a task.
    tokio::time::sleep(Duration::from_millis(200)).await;
    one.count_down(&resource, &name).await.unwrap();
    assert!(one.set_latch(&resource, 1).await.unwrap());
    waiter.wait().await;
    // Its place stays until core knows, in case that the answer was lost.
    waiter.held().await;
    assert_eq!(release(&two, &waiter.id).await, Released::Done);
    let late = claim_of(Primitive::Latch, "a", Mode::Shared);
    Try::enter(&one, at_once_of(late)).busy().await;
    one.count_down(&resource, &name).await.unwrap();
    assert_eq!(store.count("lockkit_waiter").await, 0, "also of the dead");
    assert_eq!(store.count("lockkit_arrival").await, 0);
}

#[tokio::test]
async fn several_are_held_though_the_session_was_lost() {
    let store = Store::new();
    let backend = store.client().await;
    let (old, _) = hold(&backend, claim("old")).await;
    sqlx::query("DELETE FROM lockkit_session")
        .execute(&mut store.sql().await)
        .await
        .unwrap();
    let claims = [at_once("a"), at_once_of(rw("b", Mode::Shared))];
    let Together::Held(grants) = backend.attempt_all(&claims).await.unwrap() else {
        panic!("all were free")
    };
    assert_eq!(grants.len(), 2);
    assert_gone(&renew(&backend, &old).await);
    for claim in &claims {
        assert_renewed(&renew(&backend, &claim.id()).await);
    }
    assert_eq!(store.count("lockkit_session").await, 1);
    let Together::Held(again) = backend.attempt_all(&claims).await.unwrap() else {
        panic!("held already")
    };
    let fences = |grants: &[Grant]| grants.iter().map(|grant| grant.fence).collect::<Vec<_>>();
    assert_eq!(fences(&again), fences(&grants));
}

#[tokio::test]
async fn renewing_many_of_one_name_is_one_row() {
    let store = Store::new();
    let backend = store.client().await;
    let mut ids = Vec::new();
    for _ in 0..50 {
        ids.push(hold(&backend, permits("a", 1, 50)).await.0);
    }
    for renewal in backend.renew(&ids).await {
        assert_renewed(&renewal);
    }
    let (beats,): (i64,) = sqlx::query_as("SELECT sum(ver) FROM lockkit_session")
        .fetch_one(&mut store.sql().await)
        .await
        .unwrap();
    assert_eq!(beats, 1);
}
