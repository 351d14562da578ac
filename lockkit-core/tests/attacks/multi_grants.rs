//! Grants of many names that come late, in part, or not at all.

use crate::multi::SlowToDescribe;
use crate::odd::*;

struct TooFew;

#[async_trait]
impl Oddity for TooFew {
    async fn attempt_all(&self, inner: &Memory, claims: &[Claim]) -> Result<Together> {
        match inner.attempt_all(claims).await? {
            Together::Held(mut grants) => {
                grants.pop();
                Ok(Together::Held(grants))
            }
            other => Ok(other),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn too_few_grants_are_undone_and_told() {
    let store = MemoryStore::new();
    let locker = Locker::new(odd(&store, TooFew).0).unwrap();
    let error = locker.multi_lock(["a", "b", "c"]).try_lock().await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Unexpected);
    sleep(ms(100)).await;
    assert_eq!(census(&store).await, 0);
}

/// The answer to an attempt at many comes after their leases.
struct Late;

#[async_trait]
impl Oddity for Late {
    async fn attempt_all(&self, inner: &Memory, claims: &[Claim]) -> Result<Together> {
        let outcome = inner.attempt_all(claims).await;
        sleep(ms(1_500)).await;
        outcome
    }
}

#[tokio::test(start_paused = true)]
async fn grants_that_come_after_their_lease_are_not_believed() {
    let store = MemoryStore::new();
    let locker = Locker::new(odd(&store, Late).0).unwrap();
    let both = locker.multi_lock(["a", "b"]).ttl(ms(1_000));
    assert!(both.try_lock().await.unwrap().is_none());
    sleep(ms(100)).await;
    assert_eq!(census(&store).await, 0);
    let guard = both.lock().await.unwrap();
    assert!(guard.is_held());
}

#[tokio::test(start_paused = true)]
async fn a_part_lost_while_another_is_waited_for_is_taken_anew() {
    let store = MemoryStore::new();
    let locker = Locker::new(odd(&store, SlowNever).0).unwrap();
    let other = Locker::new(store.backend()).unwrap();
    let blocker = other.mutex("b").lock().await.unwrap();
    let both = locker.multi_lock(["a", "b"]).ttl(TTL);
    let locking = tokio::spawn(async move { both.lock().await });
    sleep(ms(100)).await;
    let a = Resource::new(Primitive::Mutex, LockName::new("a").unwrap());
    let held = other.inspect(&a).await.unwrap().holders[0].id.clone();
    let _ = other.evict(&held).await.unwrap();
    drop(blocker);
    let guard = timeout(TTL, locking).await.unwrap().unwrap().unwrap();
    assert!(guard.is_held());
    assert!(other.mutex("a").try_lock().await.unwrap().is_none());
    assert!(other.mutex("b").try_lock().await.unwrap().is_none());
}

/// Takes one name at a time.
struct SlowNever;

#[async_trait]
impl Oddity for SlowNever {
    async fn attempt_all(&self, _: &Memory, _: &[Claim]) -> Result<Together> {
        Ok(Together::OneByOne)
    }
}

#[tokio::test(start_paused = true)]
async fn opposite_orders_over_two_lockers_always_end() {
    let stores = [MemoryStore::new(), MemoryStore::new()];
    let inside = Arc::new(AtomicUsize::new(0));
    let mut tasks = Vec::new();
    for number in 0..8_usize {
        let lockers = stores
            .each_ref()
            .map(|store| Locker::new(odd(store, SlowNever).0).unwrap());
        let inside = Arc::clone(&inside);
        tasks.push(tokio::spawn(async move {
            for round in 0..10 {
                let order = [(number + round) % 2, (number + round + 1) % 2];
                let locks = order
                    .iter()
                    .flat_map(|&n| [lockers[n].mutex("y"), lockers[n].mutex("x")]);
                let guard = MultiLock::across(locks).lock().await.unwrap();
                assert_eq!(inside.fetch_add(1, SeqCst), 0);
                sleep(ms(1)).await;
                inside.fetch_sub(1, SeqCst);
                let _ = guard.unlock().await.unwrap();
            }
        }));
    }
    for task in tasks {
        timeout(60 * TTL, task).await.unwrap().unwrap();
    }
    for store in &stores {
        assert_eq!(census(store).await, 0);
    }
}

async fn is_free(locker: &Locker) -> bool {
    match locker.mutex("a").try_lock().await.unwrap() {
        Some(guard) => guard.unlock().await.unwrap() == Unlocked::Clean,
        None => false,
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_not_given_is_free_once_it_is_said() {
    let (one, two) = (MemoryStore::new(), MemoryStore::new());
    let lockers = [&one, &two].map(|store| Locker::new(store.backend()).unwrap());
    let by_one = Locker::new(odd(&one, SlowNever).0).unwrap();
    let _blocker = lockers[1].mutex("z").lock().await.unwrap();
    let across = MultiLock::across([lockers[0].mutex("a"), lockers[1].mutex("z")]);
    assert!(across.try_lock().await.unwrap().is_none());
    assert!(is_free(&lockers[0]).await);
    assert!(across.clone().wait(ms(20)).lock().await.is_err());
    assert!(is_free(&lockers[0]).await);
    let _blocker = lockers[0].mutex("b").lock().await.unwrap();
    let many = by_one.multi_lock(["a", "b"]);
    assert!(many.try_lock().await.unwrap().is_none());
    assert!(is_free(&lockers[0]).await);
    assert!(many.wait(ms(20)).lock().await.is_err());
    assert!(is_free(&lockers[0]).await);
}

/// Requests take effect, and then the backend panics.
struct Panics;

#[async_trait]
impl Oddity for Panics {
    async fn attempt_all(&self, inner: &Memory, claims: &[Claim]) -> Result<Together> {
        let _ = inner.attempt_all(claims).await;
        sleep(ms(1)).await;
        panic!("on purpose");
    }

    async fn convert(&self, inner: &Memory, id: &HoldId, mode: Mode) -> Result<Converted> {
        let _ = inner.convert(id, mode).await;
        sleep(ms(1)).await;
        panic!("on purpose");
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_backend_leaves_nothing() {
    let store = MemoryStore::new();
    let locker = Locker::new(odd(&store, Panics).0).unwrap();
    let both = locker.multi_lock(["a", "b"]);
    let panicked = tokio::spawn(async move { both.lock().await.map(drop) }).await;
    assert!(panicked.is_err());
    let me = Owner::new();
    let lock = locker.read_write("a").owner(&me);
    let reader = lock.read().lock().await.unwrap();
    assert!(tokio::spawn(reader.try_upgrade()).await.is_err());
    let writer = lock.write().lock().await.unwrap();
    assert!(tokio::spawn(writer.downgrade()).await.is_err());
    assert!(lock.write().lock().await.unwrap().is_held());
    sleep(ms(100)).await;
    assert_eq!(census(&store).await, 0);
    locker.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn guards_lost_closed_and_dropped_all_at_once_leave_nothing() {
    for round in 0..60_u64 {
        let store = MemoryStore::new();
        let locker = Locker::new(store.backend()).unwrap();
        let other = Locker::new(store.backend()).unwrap();
        let tasks: Vec<_> = (0..6)
            .map(|number| {
                let lock = locker.multi_lock(["a", "b", "c"]);
                let rw = locker.read_write("d");
                tokio::spawn(async move {
                    for _ in 0..20 {
                        let Ok(guard) = lock.lock().await else { return };
                        if number % 2 == 0 {
                            drop(guard);
                        } else {
                            let _ = guard.unlock().await;
                        }
                        let Ok(writer) = rw.write().lock().await else {
                            return;
                        };
                        drop(writer.downgrade().await);
                    }
                })
            })
            .collect();
        let evicting = tokio::spawn(async move {
            for _ in 0..50 {
                for snapshot in other.list("").await.unwrap() {
                    for holder in snapshot.holders {
                        let _ = other.evict(&holder.id).await.unwrap();
                    }
                }
                tokio::task::yield_now().await;
            }
        });
        sleep(ms(round % 4)).await;
        locker.close().await.unwrap();
        for task in tasks {
            timeout(TTL, task).await.unwrap().unwrap();
        }
        // Who is evicted is told first and then freed, so that has to have ended too.
        evicting.await.unwrap();
        assert_eq!(census(&store).await, 0, "round {round}");
    }
}

#[tokio::test(start_paused = true)]
async fn more_locks_than_the_locker_may_hold_are_refused() {
    let store = MemoryStore::new();
    let mut options = LockerOptions::default();
    options.max_holds = 3;
    let locker = Locker::with_options(store.backend(), options).unwrap();
    let three = locker.multi_lock(["a", "b", "c"]);
    let _ = three.lock().await.unwrap().unlock().await.unwrap();
    let four = locker.multi_lock(["a", "b", "c", "d"]).try_lock().await;
    assert_eq!(four.unwrap_err().kind(), ErrorKind::Overloaded);
    assert_eq!(census(&store).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_close_waits_until_a_claim_that_has_just_lined_up_is_withdrawn() {
    let store = MemoryStore::new();
    let other = Locker::new(store.backend()).unwrap();
    let _blocker = other.mutex("a").lock().await.unwrap();
    let (backend, oddity) = odd(&store, SlowToDescribe::default());
    let locker = Locker::new(backend).unwrap();
    let mutex = locker.mutex("a");
    let locking = tokio::spawn(async move { mutex.lock().await.map(drop) });
    while !oddity.answering.load(SeqCst) {
        sleep(ms(1)).await;
    }
    let closing = tokio::spawn(async move { locker.close().await });
    sleep(ms(20)).await;
    oddity.closing.store(true, SeqCst);
    let closed = closing.await.unwrap();
    assert!(locking.await.unwrap().is_err());
    assert!(
        closed.is_err() || census(&store).await == 1,
        "the close said that all was released"
    );
}
