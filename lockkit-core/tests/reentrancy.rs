//! An explicit owner may enter again; the hold is counted, and never revived.

mod faulty;

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use faulty::{census, faulty};
use lockkit_core::{ErrorKind, Locker, LossReason, MemoryStore, Owner, Unlocked};

#[tokio::test(start_paused = true)]
async fn the_last_guard_releases() {
    let store = MemoryStore::new();
    let locker = Locker::new(store.backend()).unwrap();
    let me = Owner::new();
    let mutex = locker.mutex("a").owner(&me);
    let outer = mutex.lock().await.unwrap();
    let inner = mutex.lock().await.unwrap();
    let innermost = mutex.try_lock().await.unwrap().unwrap();
    assert_eq!(outer.fence(), innermost.fence());
    drop(outer);
    assert_eq!(inner.unlock().await.unwrap(), Unlocked::Clean);
    assert!(innermost.is_held());
    assert!(
        locker.mutex("a").try_lock().await.unwrap().is_none(),
        "others wait"
    );
    assert_eq!(innermost.unlock().await.unwrap(), Unlocked::Clean);
    assert_eq!(census(&store).await, 0);
    assert!(locker.mutex("a").try_lock().await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn an_inner_guard_never_shortens_the_lease() {
    let locker = Locker::new(lockkit_core::Memory::new()).unwrap();
    let me = Owner::new();
    let hour = Duration::from_secs(3600);
    let outer = locker
        .mutex("a")
        .owner(&me)
        .ttl(hour)
        .without_watchdog()
        .lock()
        .await
        .unwrap();
    let inner = locker
        .mutex("a")
        .owner(&me)
        .ttl(Duration::from_secs(1))
        .lock()
        .await
        .unwrap();
    drop(inner);
    tokio::time::sleep(hour / 2).await;
    assert!(outer.is_held());
}

#[tokio::test(start_paused = true)]
async fn a_lost_hold_is_not_entered_again() {
    let store = MemoryStore::new();
    let (backend, faults) = faulty(&store);
    let locker = Locker::new(backend).unwrap();
    let me = Owner::new();
    let outer = locker.mutex("a").owner(&me).lock().await.unwrap();
    faults.notices().gone(outer.id());
    let error = locker.mutex("a").owner(&me).lock().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert_eq!(
        outer.unlock().await.unwrap(),
        Unlocked::Lost(LossReason::Gone)
    );
    // Once every guard of the lost hold is gone, the owner starts afresh.
    assert!(locker.mutex("a").owner(&me).lock().await.unwrap().is_held());
}

#[tokio::test(start_paused = true)]
async fn two_calls_of_one_owner_do_not_wait_for_each_other_on_the_service() {
    let store = MemoryStore::new();
    let (backend, faults) = faulty(&store);
    faults.delay(Duration::from_millis(50));
    let locker = Arc::new(Locker::new(backend).unwrap());
    let me = Owner::new();
    let calls: Vec<_> = (0..8)
        .map(|_| {
            let (locker, me) = (Arc::clone(&locker), me.clone());
            tokio::spawn(async move { locker.mutex("a").owner(&me).lock().await.unwrap() })
        })
        .collect();
    let mut guards = Vec::new();
    for call in calls {
        guards.push(call.await.unwrap());
    }
    assert_eq!(faults.attempts.load(SeqCst), 1);
    assert!(
        guards
            .iter()
            .all(|guard| guard.fence() == guards[0].fence())
    );
}

#[tokio::test(start_paused = true)]
async fn a_waiting_owner_can_be_dropped_and_others_time_out() {
    let store = MemoryStore::new();
    let locker = Locker::new(store.backend()).unwrap();
    let holder = locker.mutex("a").lock().await.unwrap();
    let me = Owner::new();
    let mutex = locker.mutex("a").owner(&me);
    let first = tokio::spawn({
        let mutex = mutex.clone();
        async move { mutex.lock().await.map(drop) }
    });
    tokio::time::sleep(Duration::from_millis(1)).await;
    let second = mutex
        .clone()
        .wait(Duration::from_millis(100))
        .lock()
        .await
        .unwrap_err();
    assert_eq!(second.kind(), ErrorKind::Timeout);
    assert!(mutex.try_lock().await.unwrap().is_none());
    first.abort();
    let _ = first.await;
    drop(holder);
    assert!(mutex.lock().await.unwrap().is_held());
}

#[tokio::test(start_paused = true)]
async fn a_shared_hold_cannot_be_detached() {
    let locker = Locker::new(lockkit_core::Memory::new()).unwrap();
    let me = Owner::new();
    let outer = locker.mutex("a").owner(&me).lock().await.unwrap();
    let inner = locker.mutex("a").owner(&me).lock().await.unwrap();
    let error = inner.detach(Duration::from_secs(1)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(outer.is_held());
}
