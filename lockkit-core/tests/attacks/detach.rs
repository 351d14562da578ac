//! Detaching while something else happens to the hold.

use crate::odd::*;

#[tokio::test(start_paused = true)]
async fn a_detach_that_succeeded_is_not_undone_because_the_guard_ran_out_meanwhile() {
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
    sleep(ms(9_300)).await;
    faults.delay(ms(200)); // The deadline passes at 9.4 s, the lease runs until 10 s.
    let Ok(id) = guard.detach(6 * TTL).await else {
        return; // "Lost" is a good answer as well, as long as it is the truth.
    };
    faults.delay(Duration::ZERO);
    sleep(TTL).await;
    let other = Locker::new(store.backend()).unwrap();
    assert!(
        other.mutex("a").try_lock().await.unwrap().is_none(),
        "{id:?} was said to live for a minute, and somebody else has the lock"
    );
}

#[tokio::test(start_paused = true)]
async fn a_detach_that_succeeded_is_not_undone_by_a_close_meanwhile() {
    let store = MemoryStore::new();
    let (backend, faults) = faulty(&store);
    let locker = Locker::new(backend).unwrap();
    let guard = locker.mutex("a").ttl(TTL).lock().await.unwrap();
    faults.delay(ms(200));
    let detaching = tokio::spawn(guard.detach(6 * TTL));
    sleep(ms(10)).await;
    let closed = locker.close().await;
    let detached = detaching.await.unwrap();
    assert!(
        detached.is_err() || census(&store).await == 1,
        "closed: {closed:?}, detached: {detached:?}, and nothing is held"
    );
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_its_owner_took_during_a_detach_is_not_left_hanging() {
    let store = MemoryStore::new();
    let (backend, faults) = faulty(&store);
    let locker = Locker::new(backend).unwrap();
    let me = Owner::new();
    let mutex = locker.mutex("a").owner(&me);
    let outer = mutex.lock().await.unwrap();
    faults.delay(ms(50));
    let detaching = tokio::spawn(outer.detach(6 * TTL));
    sleep(ms(10)).await;
    let inner = mutex.clone().wait(ms(20)).lock().await;
    let detached = detaching.await.unwrap();
    faults.delay(Duration::ZERO);
    if let Ok(inner) = inner {
        let believed = inner.is_held();
        let told = timeout(TTL, inner.lost()).await.is_ok();
        assert!(believed || told, "neither held nor lost");
        let _ = inner.unlock().await;
    }
    sleep(ms(100)).await;
    assert!(
        detached.is_err() || census(&store).await == 1,
        "the other guard of the owner released the detached hold"
    );
}

#[derive(Default)]
struct DetachUnanswered(AtomicBool);

#[async_trait]
impl Oddity for DetachUnanswered {
    async fn extend(&self, inner: &Memory, id: &HoldId, ttl: Duration) -> Renewal {
        let _ = inner.extend(id, ttl).await;
        Renewal::Unknown(unavailable())
    }

    async fn release(&self, inner: &Memory, ids: &[HoldId]) -> Vec<Result<Released>> {
        if self.0.load(SeqCst) {
            return inner.release(ids).await;
        }
        ids.iter().map(|_| Err(unavailable())).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_detach_that_nobody_confirmed_is_undone_for_as_long_as_it_may_live() {
    let store = MemoryStore::new();
    let (backend, outage) = odd(&store, DetachUnanswered::default());
    let locker = Locker::new(backend).unwrap();
    let guard = locker.mutex("a").ttl(TTL).lock().await.unwrap();
    assert!(guard.detach(360 * TTL).await.is_err());
    sleep(2 * TTL).await;
    outage.0.store(true, SeqCst);
    sleep(TTL).await;
    assert_eq!(census(&store).await, 0, "it stays for an hour");
}
