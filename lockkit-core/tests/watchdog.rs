//! One watchdog for everything that is held: no task and no timer for each.

mod faulty;

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use faulty::faulty;
use lockkit_core::{Locker, Memory, MemoryStore};
use tokio::runtime::Handle;

const TTL: Duration = Duration::from_secs(30);

#[tokio::test(start_paused = true)]
async fn ten_thousand_holds_taken_over_time_end_up_in_one_renewal_per_beat() {
    let store = MemoryStore::new();
    let (backend, faults) = faulty(&store);
    let locker = Locker::new(backend).unwrap();
    let mut guards = Vec::new();
    for n in 0..10_000 {
        guards.push(locker.mutex(format!("a{n}")).ttl(TTL).lock().await.unwrap());
        if n % 1000 == 999 {
            tokio::time::sleep(Duration::from_millis(900)).await;
        }
    }
    tokio::time::sleep(TTL).await;
    let (calls, ids) = (
        faults.renew_calls.load(SeqCst),
        faults.renewed_ids.load(SeqCst),
    );
    tokio::time::sleep(10 * TTL).await;
    let calls = faults.renew_calls.load(SeqCst) - calls;
    let ids = faults.renewed_ids.load(SeqCst) - ids;
    assert!(guards.iter().all(lockkit_core::Guard::is_held));
    assert!(calls <= 40, "{calls} calls in 30 beats");
    assert!(ids <= 40 * 10_000, "{ids} ids renewed in 30 beats");
}

#[tokio::test]
async fn neither_an_uncontended_lock_nor_a_held_one_costs_a_task() {
    let locker = Locker::new(Memory::new()).unwrap();
    let metrics = Handle::current().metrics();
    let before = metrics.num_alive_tasks();
    let mut guards = Vec::new();
    for n in 0..1000 {
        guards.push(locker.mutex(format!("a{n}")).lock().await.unwrap());
        assert_eq!(metrics.num_alive_tasks(), before);
    }
    for guard in guards {
        let _ = guard.unlock().await.unwrap();
        assert_eq!(metrics.num_alive_tasks(), before);
    }
}

#[tokio::test(start_paused = true)]
async fn a_place_in_line_is_renewed_too() {
    let store = MemoryStore::new();
    let (backend, faults) = faulty(&store);
    let locker = Locker::new(backend).unwrap();
    let other = Locker::new(store.backend()).unwrap();
    let guard = other.mutex("a").lock().await.unwrap();
    let waiting = tokio::spawn(async move { locker.mutex("a").ttl(TTL).lock().await });
    tokio::time::sleep(2 * TTL).await;
    let calls = faults.renew_calls.load(SeqCst);
    assert!((5..=8).contains(&calls), "{calls} beats in two leases");
    drop(guard);
    assert!(waiting.await.unwrap().unwrap().is_held());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_renewed_when_nothing_is_held() {
    let store = MemoryStore::new();
    let (backend, faults) = faulty(&store);
    let locker = Locker::new(backend).unwrap();
    let _ = locker
        .mutex("a")
        .lock()
        .await
        .unwrap()
        .unlock()
        .await
        .unwrap();
    let guard = locker.mutex("b").without_watchdog().lock().await.unwrap();
    tokio::time::sleep(10 * TTL).await;
    assert!(!guard.is_held());
    assert_eq!(faults.renew_calls.load(SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn short_leases_among_long_ones_are_renewed_in_their_own_time() {
    let store = MemoryStore::new();
    let (backend, _) = faulty(&store);
    let locker = Locker::new(backend).unwrap();
    let long = locker
        .mutex("long")
        .ttl(Duration::from_secs(3600))
        .lock()
        .await
        .unwrap();
    let short = locker
        .mutex("short")
        .ttl(Duration::from_millis(300))
        .lock()
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(long.is_held() && short.is_held());
}
