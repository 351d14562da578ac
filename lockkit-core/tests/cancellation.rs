//! A dropped future leaves nothing behind, wherever it is dropped.

mod faulty;

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use faulty::{census, faulty};
use lockkit_core::{ErrorKind, Locker, MemoryStore, Result};

const WAY: Duration = Duration::from_millis(25);

/// Runs `work` for `time`, then drops it; whether it was done by then.
async fn run_for<T>(time: Duration, work: impl Future<Output = T>) -> bool {
    let work = pin!(work);
    tokio::time::timeout(time, work).await.is_ok()
}

async fn settled(store: &MemoryStore) {
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(census(store).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_lock_call_dropped_at_any_moment_of_its_round_trip_leaves_nothing() {
    for millis in [0, 1, 24, 25, 26, 49, 50, 51, 75] {
        let store = MemoryStore::new();
        let (backend, faults) = faulty(&store);
        let locker = Locker::new(backend).unwrap();
        faults.delay(WAY);
        let hour = Duration::from_secs(3600);
        let mutex = locker.mutex("a").ttl(hour);
        run_for(Duration::from_millis(millis), mutex.lock()).await;
        settled(&store).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiting_call_dropped_at_any_moment_leaves_its_place() {
    for millis in [0, 10, 25, 30, 50, 60, 200, 500] {
        let store = MemoryStore::new();
        let (backend, faults) = faulty(&store);
        let locker = Locker::new(backend).unwrap();
        let other = Locker::new(store.backend()).unwrap();
        let holder = other.mutex("a").lock().await.unwrap();
        faults.delay(WAY);
        let mutex = locker.mutex("a").fair();
        run_for(Duration::from_millis(millis), mutex.lock()).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(
            census(&store).await,
            1,
            "dropped after {millis} ms: only the holder is left"
        );
        drop(holder);
        settled(&store).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_unlock_that_was_dropped_still_releases() {
    for millis in [0, 10, 25, 49] {
        let store = MemoryStore::new();
        let (backend, faults) = faulty(&store);
        let locker = Locker::new(backend).unwrap();
        let guard = locker.mutex("a").lock().await.unwrap();
        faults.delay(WAY);
        assert!(!run_for(Duration::from_millis(millis), guard.unlock()).await);
        settled(&store).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_detach_that_was_dropped_releases() {
    let store = MemoryStore::new();
    let (backend, faults) = faulty(&store);
    let locker = Locker::new(backend).unwrap();
    let guard = locker.mutex("a").lock().await.unwrap();
    faults.delay(WAY);
    assert!(!run_for(WAY / 2, guard.detach(Duration::from_secs(60))).await);
    settled(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_grant_whose_reply_was_lost_is_adopted_by_the_next_attempt() {
    let store = MemoryStore::new();
    let (backend, faults) = faulty(&store);
    let locker = Locker::new(backend).unwrap();
    faults.lost_attempts.store(2, SeqCst);
    let guard = locker.mutex("a").lock().await.unwrap();
    assert_eq!(faults.attempts.load(SeqCst), 3);
    assert_eq!(guard.fence().get(), 1, "it was granted once");
    drop(guard);
    settled(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_try_whose_reply_was_lost_is_undone() {
    let store = MemoryStore::new();
    let (backend, faults) = faulty(&store);
    let locker = Locker::new(backend).unwrap();
    faults.lost_attempts.store(1, SeqCst);
    let error = locker.mutex("a").try_lock().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    settled(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_comes_after_the_deadline_is_undone() {
    let store = MemoryStore::new();
    let (backend, faults) = faulty(&store);
    let locker = Locker::new(backend).unwrap();
    faults.delay(Duration::from_secs(1));
    let patient = locker.mutex("a").wait(Duration::from_millis(1_500));
    let error = patient.lock().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(census(&store).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_release_whose_reply_was_lost_is_repeated_and_harms_nobody() -> Result<()> {
    let store = MemoryStore::new();
    let (backend, faults) = faulty(&store);
    let locker = Locker::new(backend)?;
    let guard = locker.mutex("a").lock().await?;
    faults.lost_releases.store(1, SeqCst);
    assert_eq!(
        guard.unlock().await.unwrap_err().kind(),
        ErrorKind::Unavailable
    );
    let successor = locker.mutex("a").lock().await?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(faults.releases.load(SeqCst) >= 2, "it was repeated");
    assert!(
        locker.mutex("a").try_lock().await?.is_none(),
        "and freed nobody else's hold"
    );
    drop(successor);
    Ok(())
}
