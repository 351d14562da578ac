//! Latches whose waiters, participants and services misbehave.

use crate::odd::*;

#[tokio::test(start_paused = true)]
async fn whoever_waited_passes_even_if_it_is_set_anew_before_it_looks() {
    let store = MemoryStore::new();
    let locker = Locker::new(store.backend()).unwrap();
    let latch = locker.latch("a");
    assert!(latch.try_set(1).await.unwrap());
    let waiter = latch.clone();
    let waiting = tokio::spawn(async move { waiter.wait().await });
    sleep(ms(10)).await;
    latch.count_down("x").await.unwrap();
    assert!(latch.try_set(2).await.unwrap());
    timeout(ms(100), waiting).await.unwrap().unwrap().unwrap();
    let error = latch.wait_at_most(ms(10)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    sleep(ms(100)).await;
    assert_eq!(census(&store).await, 0);
}

#[tokio::test(start_paused = true)]
async fn whoever_waited_passes_even_if_the_reply_is_lost_and_it_is_set_anew() {
    let store = MemoryStore::new();
    let (backend, faults) = faulty(&store);
    let locker = Locker::new(backend).unwrap();
    let other = Locker::new(store.backend()).unwrap().latch("a");
    assert!(other.try_set(1).await.unwrap());
    let waiter = locker.latch("a");
    let waiting = tokio::spawn(async move { waiter.wait().await });
    sleep(ms(10)).await;
    faults.lost_attempts.store(1, SeqCst);
    other.count_down("x").await.unwrap();
    sleep(ms(5)).await;
    assert!(other.try_set(1).await.unwrap());
    timeout(60 * TTL, waiting).await.unwrap().unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_waiter_whose_place_was_lost_still_passes() {
    let store = MemoryStore::new();
    let (backend, faults) = faulty(&store);
    let locker = Locker::new(backend).unwrap();
    let other = Locker::new(store.backend()).unwrap();
    let latch = locker.latch("a").ttl(TTL);
    assert!(latch.try_set(1).await.unwrap());
    let waiter = latch.clone();
    let waiting = tokio::spawn(async move { waiter.wait().await });
    sleep(ms(10)).await;
    let resource = Resource::new(Primitive::Latch, LockName::new("a").unwrap());
    let place = other.inspect(&resource).await.unwrap().waiters[0]
        .id
        .clone();
    let _ = other.release(&place).await.unwrap();
    faults.notices().gone(&place);
    sleep(ms(10)).await;
    assert_eq!(other.inspect(&resource).await.unwrap().waiters.len(), 1);
    other.latch("a").count_down("x").await.unwrap();
    timeout(ms(100), waiting).await.unwrap().unwrap().unwrap();
    sleep(3 * TTL).await;
    assert_eq!(census(&store).await, 0);
}

#[tokio::test(start_paused = true)]
async fn places_of_those_who_passed_do_not_count_as_waiting() {
    let store = MemoryStore::new();
    let mut options = LockerOptions::default();
    options.max_waiters = 1;
    let locker = Locker::with_options(store.backend(), options).unwrap();
    for round in 0..5 {
        let latch = locker.latch(format!("{round}"));
        assert!(latch.try_set(1).await.unwrap());
        let waiter = latch.clone();
        let waiting = tokio::spawn(async move { waiter.wait().await });
        sleep(ms(1)).await;
        latch.count_down("x").await.unwrap();
        waiting.await.unwrap().unwrap();
        assert_eq!(
            latch
                .wait_at_most(Duration::MAX)
                .await
                .map_err(|e| e.kind()),
            Ok(())
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_close_ends_every_wait_and_leaves_nothing() {
    let store = MemoryStore::new();
    let (backend, faults) = faulty(&store);
    let locker = Locker::new(backend).unwrap();
    for delay in [ms(0), ms(20)] {
        faults.delay(delay);
    }
    let waits: Vec<_> = (0..8)
        .map(|number| {
            let latch = locker.latch("a");
            tokio::spawn(async move {
                sleep(ms(7 * number)).await;
                latch.wait().await
            })
        })
        .collect();
    sleep(ms(50)).await;
    locker.close().await.unwrap();
    for wait in waits {
        let error = timeout(TTL, wait).await.unwrap().unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed);
    }
    assert_eq!(census(&store).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_step_repeated_counts_once_and_more_participants_than_asked_do_no_harm() {
    let locker = Locker::new(Memory::new()).unwrap();
    let latch = locker.latch("a");
    let error = latch.count_down("x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(latch.try_set(2).await.unwrap());
    for _ in 0..3 {
        assert_eq!(latch.count_down("x").await.unwrap(), 1);
    }
    assert!(!latch.reset().await.unwrap(), "somebody is counting");
    for participant in ["y", "z", "y"] {
        assert_eq!(latch.count_down(participant).await.unwrap(), 0);
    }
    assert!(latch.reset().await.unwrap());
    assert_eq!(latch.count().await.unwrap(), None);
}
