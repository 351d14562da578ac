//! Waiting: deadlines, outages, order, limits, closing.

mod faulty;

use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use faulty::{census, faulty};
use lockkit_core::{ErrorKind, Locker, LockerOptions, Memory, MemoryStore};
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn a_wait_ends_at_its_deadline_and_leaves_no_place() {
    let store = MemoryStore::new();
    let locker = Locker::new(store.backend()).unwrap();
    let _guard = locker.mutex("a").lock().await.unwrap();
    let start = Instant::now();
    let error = locker
        .mutex("a")
        .wait(Duration::from_millis(200))
        .lock()
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    let took = start.elapsed();
    assert!(
        took >= Duration::from_millis(200) && took < Duration::from_millis(250),
        "{took:?}"
    );
    tokio::task::yield_now().await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(census(&store).await, 1);
}

#[tokio::test(start_paused = true)]
async fn zero_wait_is_one_attempt_and_for_ever_does_not_overflow() {
    let locker = Locker::new(Memory::new()).unwrap();
    let guard = locker.mutex("a").wait(Duration::ZERO).lock().await.unwrap();
    let error = locker
        .mutex("a")
        .wait(Duration::ZERO)
        .lock()
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    drop(guard);
    drop(locker.mutex("a").wait(Duration::MAX).lock().await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_waited_out_within_the_deadline() {
    let store = MemoryStore::new();
    let (backend, faults) = faulty(&store);
    let locker = Locker::new(backend).unwrap();
    faults.lost_attempts.store(usize::MAX, SeqCst);
    let waiting = tokio::spawn(async move { locker.mutex("a").lock().await });
    tokio::time::sleep(Duration::from_secs(3)).await;
    faults.lost_attempts.store(0, SeqCst);
    assert!(waiting.await.unwrap().unwrap().is_held());
    let tries = faults.attempts.load(SeqCst);
    assert!(tries < 20, "{tries} tries in 3 s: the pauses grow");
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_deadline_gives_up_on_a_service_that_is_not_there() {
    let store = MemoryStore::new();
    let (backend, faults) = faulty(&store);
    let locker = Locker::new(backend).unwrap();
    faults.lost_attempts.store(usize::MAX, SeqCst);
    let error = locker.mutex("a").lock().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_hangs_does_not_hang_the_caller() {
    let store = MemoryStore::new();
    let (backend, faults) = faulty(&store);
    let locker = Locker::new(backend).unwrap();
    let guard = locker.mutex("b").lock().await.unwrap();
    faults.hang.store(true, SeqCst);
    let start = Instant::now();
    let kind = |error: lockkit_core::Error| error.kind();
    assert_eq!(
        locker
            .mutex("a")
            .try_lock()
            .await
            .map_err(kind)
            .unwrap_err(),
        ErrorKind::Unavailable
    );
    assert_eq!(
        guard.unlock().await.map_err(kind).unwrap_err(),
        ErrorKind::Unavailable
    );
    assert_eq!(
        locker.list("").await.map_err(kind).unwrap_err(),
        ErrorKind::Unavailable
    );
    assert!(
        start.elapsed() < Duration::from_secs(31),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(
        locker.close().await.map_err(kind).unwrap_err(),
        ErrorKind::Unavailable
    );
}

#[tokio::test(start_paused = true)]
async fn fair_waiters_are_served_in_the_order_in_which_they_came() {
    let locker = Locker::new(Memory::new()).unwrap();
    let guard = locker.mutex("a").lock().await.unwrap();
    let served = Arc::new(Mutex::new(Vec::new()));
    let mut waiters = Vec::new();
    for n in 0..10 {
        let (locker, served) = (locker.clone(), Arc::clone(&served));
        waiters.push(tokio::spawn(async move {
            let guard = locker.mutex("a").fair().lock().await.unwrap();
            served.lock().unwrap().push(n);
            let _ = guard.unlock().await.unwrap();
        }));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    waiters[4].abort();
    tokio::time::sleep(Duration::from_millis(1)).await;
    drop(guard);
    for waiter in waiters {
        let _ = waiter.await;
    }
    assert_eq!(*served.lock().unwrap(), [0, 1, 2, 3, 5, 6, 7, 8, 9]);
}

#[tokio::test(start_paused = true)]
async fn a_barging_holder_does_not_starve_those_who_wait() {
    let locker = Locker::new(Memory::new()).unwrap();
    let guard = locker.mutex("a").lock().await.unwrap();
    let waiting = tokio::spawn({
        let locker = locker.clone();
        async move { locker.mutex("a").lock().await.unwrap().fence().get() }
    });
    tokio::time::sleep(Duration::from_millis(1)).await;
    drop(guard);
    // Takes and releases in one go, without ever letting the waiter run in between.
    for _ in 0..5 {
        let _ = locker
            .mutex("a")
            .lock()
            .await
            .unwrap()
            .unlock()
            .await
            .unwrap();
    }
    assert!(
        waiting.await.unwrap() <= 4,
        "passed over once, not five times"
    );
}

#[tokio::test(start_paused = true)]
async fn limits_refuse_before_anything_is_sent() {
    let store = MemoryStore::new();
    let (backend, faults) = faulty(&store);
    let mut options = LockerOptions::default();
    options.max_holds = 1;
    let locker = Locker::with_options(backend, options).unwrap();
    let _guard = locker.mutex("a").lock().await.unwrap();
    let error = locker.mutex("b").lock().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Overloaded);
    assert!(error.to_string().contains("max_holds"), "{error}");
    assert_eq!(faults.attempts.load(SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn closing_ends_waits_and_refuses_new_claims() {
    let store = MemoryStore::new();
    let locker = Locker::new(store.backend()).unwrap();
    let guard = locker.mutex("a").lock().await.unwrap();
    let waiting = tokio::spawn({
        let locker = locker.clone();
        async move { locker.mutex("a").lock().await.map(drop) }
    });
    tokio::time::sleep(Duration::from_millis(1)).await;
    locker.close().await.unwrap();
    assert_eq!(
        waiting.await.unwrap().unwrap_err().kind(),
        ErrorKind::Closed
    );
    assert_eq!(
        locker.mutex("a").lock().await.unwrap_err().kind(),
        ErrorKind::Closed
    );
    assert_eq!(locker.list("").await.unwrap_err().kind(), ErrorKind::Closed);
    assert!(!guard.is_held());
    assert_eq!(census(&store).await, 0);
    locker.close().await.unwrap();
}

#[tokio::test]
async fn bad_arguments_are_refused_before_any_request() {
    let store = MemoryStore::new();
    let (backend, faults) = faulty(&store);
    let locker = Locker::new(backend).unwrap();
    let day = Duration::from_secs(24 * 3600);
    let refused = [
        (locker.mutex(""), ErrorKind::InvalidName),
        (locker.mutex("x".repeat(201)), ErrorKind::InvalidName),
        (
            locker.mutex("a").ttl(Duration::ZERO),
            ErrorKind::InvalidArgument,
        ),
        (locker.mutex("a").ttl(day * 2), ErrorKind::InvalidArgument),
        (
            locker.mutex("a").ttl(Duration::MAX),
            ErrorKind::InvalidArgument,
        ),
        (
            locker.mutex("a").label("x".repeat(201)),
            ErrorKind::InvalidArgument,
        ),
    ];
    for (mutex, kind) in refused {
        assert_eq!(mutex.lock().await.unwrap_err().kind(), kind);
        assert_eq!(mutex.try_lock().await.unwrap_err().kind(), kind);
    }
    assert_eq!(faults.attempts.load(SeqCst), 0);
}

#[test]
fn outside_a_runtime_the_error_says_what_to_do() {
    let error = Locker::new(Memory::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidConfig);
    assert!(error.to_string().contains("#[tokio::main]"), "{error}");
}
