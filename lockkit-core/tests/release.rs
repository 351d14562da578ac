//! Guards release wherever they are dropped, and closing proves it.

mod faulty;

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use faulty::{census, faulty};
use lockkit_core::{Locker, LossReason, MemoryStore, Released, Unlocked};

#[tokio::test]
async fn a_guard_dropped_on_a_plain_thread_releases() {
    let store = MemoryStore::new();
    let locker = Locker::new(store.backend()).unwrap();
    let guard = locker.mutex("a").lock().await.unwrap();
    std::thread::spawn(move || drop(guard)).join().unwrap();
    locker.close().await.unwrap();
    assert_eq!(census(&store).await, 0);
}

#[tokio::test]
async fn a_panic_releases() {
    let store = MemoryStore::new();
    let locker = Locker::new(store.backend()).unwrap();
    let guard = locker.mutex("a").lock().await.unwrap();
    let panicked = tokio::spawn(async move {
        let _guard = guard;
        panic!("on purpose");
    });
    assert!(panicked.await.unwrap_err().is_panic());
    locker.close().await.unwrap();
    assert_eq!(census(&store).await, 0);
}

#[test]
fn a_guard_that_outlives_its_runtime_drops_quietly() {
    let store = MemoryStore::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let guard = runtime.block_on(async {
        Locker::new(store.backend())
            .unwrap()
            .mutex("a")
            .lock()
            .await
            .unwrap()
    });
    drop(runtime);
    drop(guard);
}

#[tokio::test]
async fn the_last_handle_may_go_before_the_release_is_out() {
    let store = MemoryStore::new();
    let (backend, faults) = faulty(&store);
    faults.delay(Duration::from_millis(20));
    let locker = Locker::new(backend).unwrap();
    let guard = locker.mutex("a").lock().await.unwrap();
    drop(locker);
    drop(guard);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(census(&store).await, 0);
}

#[tokio::test(start_paused = true)]
async fn releases_of_dropped_guards_go_out_together() {
    let store = MemoryStore::new();
    let (backend, faults) = faulty(&store);
    let locker = Locker::new(backend).unwrap();
    let mut guards = Vec::new();
    for n in 0..1000 {
        guards.push(locker.mutex(format!("a{n}")).lock().await.unwrap());
    }
    drop(guards);
    locker.close().await.unwrap();
    assert_eq!(faults.releases.load(SeqCst), 1000);
    assert_eq!(census(&store).await, 0);
}

#[tokio::test(start_paused = true)]
async fn closing_tells_live_guards_before_it_releases_them() {
    let store = MemoryStore::new();
    let locker = Locker::new(store.backend()).unwrap();
    let guard = locker.mutex("a").lock().await.unwrap();
    let lost = tokio::spawn(async move { (guard.lost().await, guard.unlock().await.unwrap()) });
    tokio::task::yield_now().await;
    locker.close().await.unwrap();
    let (reason, unlocked) = lost.await.unwrap();
    assert_eq!(reason, LossReason::Closed);
    assert_eq!(unlocked, Unlocked::Lost(LossReason::Closed));
    assert_eq!(census(&store).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_detached_hold_lives_by_its_own_expiry() {
    let store = MemoryStore::new();
    let locker = Locker::new(store.backend()).unwrap();
    let other = Locker::new(store.backend()).unwrap();
    let minute = Duration::from_secs(60);
    let guard = locker.mutex("a").lock().await.unwrap();
    let id = guard.detach(minute).await.unwrap();
    locker.close().await.unwrap();

    tokio::time::sleep(minute / 2).await;
    other.renew(&id, minute).await.unwrap();
    tokio::time::sleep(minute * 3 / 4).await;
    assert!(other.mutex("a").try_lock().await.unwrap().is_none());
    assert_eq!(other.release(&id).await.unwrap(), Released::Done);
    assert_eq!(other.release(&id).await.unwrap(), Released::NotHeld);

    let guard = other.mutex("a").lock().await.unwrap();
    let id = guard.detach(minute).await.unwrap();
    tokio::time::sleep(minute).await;
    let error = other.renew(&id, minute).await.unwrap_err();
    assert_eq!(error.kind(), lockkit_core::ErrorKind::Lost);
    assert_eq!(census(&store).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_outlives_the_close_leaves_nothing_to_wait_for() {
    let store = MemoryStore::new();
    let locker = Locker::new(store.backend()).unwrap();
    let (one, other) = (
        locker.mutex("a").lock().await.unwrap(),
        locker.mutex("b").lock().await.unwrap(),
    );
    locker.close().await.unwrap();
    drop(one);
    let _ = other.unlock().await.unwrap();
    locker.close().await.unwrap();
}
