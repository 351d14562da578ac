//! A loss is told once, for good, and before the service can hand the lock on.

mod faulty;

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use faulty::faulty;
use lockkit_core::{ErrorKind, Locker, LossReason, MemoryStore, Unlocked};
use tokio::time::Instant;

const TTL: Duration = Duration::from_secs(10);
/// 10 s less 1 % less 500 ms.
const VALID: Duration = Duration::from_millis(9_400);

#[tokio::test(start_paused = true)]
async fn without_a_confirmed_renewal_the_loss_comes_before_the_successor() {
    let store = MemoryStore::new();
    let (backend, faults) = faulty(&store);
    let cut_off = Locker::new(backend).unwrap();
    let other = Locker::new(store.backend()).unwrap();
    let start = Instant::now();
    let guard = cut_off.mutex("a").ttl(TTL).lock().await.unwrap();
    faults.hang.store(true, SeqCst);
    let successor = tokio::spawn(async move {
        let guard = other.mutex("a").lock().await.unwrap();
        (guard, start.elapsed())
    });
    assert_eq!(guard.lost().await, LossReason::Expired);
    let told_after = start.elapsed();
    assert!(
        told_after >= VALID && told_after < VALID + Duration::from_millis(20),
        "{told_after:?}"
    );
    assert!(!guard.is_held());
    let (successor, entered_after) = successor.await.unwrap();
    assert!(entered_after >= TTL && told_after < entered_after);
    assert!(successor.fence() > guard.fence());
}

#[tokio::test(start_paused = true)]
async fn a_slow_reply_does_not_lengthen_the_lease() {
    let store = MemoryStore::new();
    let (backend, faults) = faulty(&store);
    let locker = Locker::new(backend).unwrap();
    faults.delay(Duration::from_secs(1));
    let start = Instant::now();
    let guard = locker
        .mutex("a")
        .ttl(TTL)
        .without_watchdog()
        .lock()
        .await
        .unwrap();
    guard.lost().await;
    // Granted one second after the call, when the request reached the store; told two seconds
    // after it. The lease runs from the grant, and is not counted from the reply.
    assert!(
        start.elapsed() < VALID + Duration::from_millis(1_020),
        "{:?}",
        start.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_failed_renewal_is_no_loss_and_the_next_one_saves_the_hold() {
    let store = MemoryStore::new();
    let (backend, faults) = faulty(&store);
    let locker = Locker::new(backend).unwrap();
    let guard = locker.mutex("a").ttl(TTL).lock().await.unwrap();
    for _ in 0..20 {
        faults.renewals_unknown.store(true, SeqCst);
        tokio::time::sleep(TTL / 2).await;
        assert!(guard.is_held());
        faults.renewals_unknown.store(false, SeqCst);
        tokio::time::sleep(TTL / 2).await;
        assert!(guard.is_held());
    }
    assert_eq!(guard.unlock().await.unwrap(), Unlocked::Clean);
}

#[tokio::test(start_paused = true)]
async fn a_hanging_renewal_delays_neither_the_loss_nor_other_holds() {
    let store = MemoryStore::new();
    let (backend, faults) = faulty(&store);
    let locker = Locker::new(backend).unwrap();
    let guard = locker.mutex("a").ttl(TTL).lock().await.unwrap();
    faults.hang.store(true, SeqCst);
    tokio::time::sleep(TTL / 2).await;
    faults.hang.store(false, SeqCst);
    tokio::time::sleep(TTL).await;
    assert!(
        guard.is_held(),
        "a renewal that hung was given up and tried again"
    );
}

#[tokio::test(start_paused = true)]
async fn what_the_service_gave_up_is_lost_at_once_and_stays_lost() {
    let store = MemoryStore::new();
    let (backend, faults) = faulty(&store);
    let locker = Locker::new(backend).unwrap();
    let guard = locker.mutex("a").lock().await.unwrap();
    let token = guard.cancellation_token();
    faults.notices().gone(guard.id());
    assert!(!guard.is_held() && token.is_cancelled());
    assert_eq!(guard.lost().await, LossReason::Gone);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(
        !guard.is_held(),
        "the store still renews it, the guard does not come back"
    );
    assert_eq!(
        guard.unlock().await.unwrap(),
        Unlocked::Lost(LossReason::Gone)
    );
}

#[tokio::test(start_paused = true)]
async fn an_evicted_hold_is_told_and_its_release_frees_nobody_else() {
    let store = MemoryStore::new();
    let locker = Locker::new(store.backend()).unwrap();
    let guard = locker.mutex("a").lock().await.unwrap();
    locker.evict(guard.id()).await.unwrap();
    assert_eq!(guard.lost().await, LossReason::Gone);
    let successor = locker.mutex("a").lock().await.unwrap();
    assert_eq!(
        guard.unlock().await.unwrap(),
        Unlocked::Lost(LossReason::Gone)
    );
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(successor.is_held());
    assert!(locker.mutex("a").try_lock().await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn work_stops_where_it_stands_when_the_lock_is_lost() {
    let store = MemoryStore::new();
    let locker = Locker::new(store.backend()).unwrap();
    let guard = locker
        .mutex("a")
        .ttl(TTL)
        .without_watchdog()
        .lock()
        .await
        .unwrap();
    let error = guard
        .while_held(std::future::pending::<()>())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert!(error.to_string().contains("name=a"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn cancelling_a_child_token_is_no_loss() {
    let locker = Locker::new(lockkit_core::Memory::new()).unwrap();
    let guard = locker.mutex("a").lock().await.unwrap();
    guard.cancellation_token().cancel();
    assert!(guard.is_held());
    assert!(!guard.cancellation_token().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn a_hold_that_ran_out_is_let_go_at_the_end_of_its_lease_though_its_guard_lives() {
    let store = MemoryStore::new();
    let (backend, faults) = faulty(&store);
    let locker = Locker::new(backend).unwrap();
    let guard = locker
        .mutex("a")
        .ttl(TTL)
        .without_watchdog()
        .lock()
        .await
        .unwrap();
    tokio::time::sleep(TTL - Duration::from_millis(50)).await;
    assert!(!guard.is_held());
    assert_eq!(
        faults.releases.load(SeqCst),
        0,
        "the margin is the holder's"
    );
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(faults.releases.load(SeqCst), 1);
}
