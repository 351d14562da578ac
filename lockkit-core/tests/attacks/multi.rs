//! Several locks as one: deadlines, lost parts, lost replies, closes.

use crate::odd::*;

#[tokio::test]
async fn waiting_for_ever_is_a_legal_duration() {
    let locker = Locker::new(Memory::new()).unwrap();
    let both = locker.multi_lock(["a", "b"]).wait(Duration::MAX);
    assert!(both.lock().await.unwrap().is_held());
}

#[tokio::test(start_paused = true)]
async fn the_other_parts_of_a_lost_guard_are_free_after_a_lease_though_it_lives() {
    let store = MemoryStore::new();
    let locker = Locker::new(store.backend()).unwrap();
    let other = Locker::new(store.backend()).unwrap();
    let guard = locker.multi_lock(["a", "b"]).ttl(TTL).lock().await.unwrap();
    let second = guard.holds().nth(1).unwrap().0.clone();
    let _ = other.evict(&second).await.unwrap();
    assert!(!guard.is_held());
    sleep(2 * TTL).await;
    assert!(
        other.mutex("a").try_lock().await.unwrap().is_some(),
        "a lost guard keeps a name for as long as it lives"
    );
}

/// Answers an attempt at many late, and then is slow to say what it is.
#[derive(Default)]
pub(crate) struct SlowToDescribe {
    pub(crate) answering: AtomicBool,
    pub(crate) closing: AtomicBool,
    slow: AtomicBool,
}

impl SlowToDescribe {
    async fn until_closing(&self) {
        self.answering.store(true, SeqCst);
        while !self.closing.load(SeqCst) {
            sleep(ms(1)).await;
        }
        sleep(ms(50)).await;
    }
}

#[async_trait]
impl Oddity for SlowToDescribe {
    async fn attempt(&self, inner: &mut dyn Ticket) -> Result<Attempt> {
        self.until_closing().await;
        let outcome = inner.attempt().await;
        self.slow.store(true, SeqCst);
        outcome
    }

    async fn attempt_all(&self, inner: &Memory, claims: &[Claim]) -> Result<Together> {
        self.until_closing().await;
        let outcome = inner.attempt_all(claims).await;
        self.slow.store(true, SeqCst);
        outcome
    }

    fn described(&self) {
        if self.slow.swap(false, SeqCst) {
            tokio::task::block_in_place(|| std::thread::sleep(ms(500)));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_close_waits_until_late_grants_of_many_names_are_released() {
    let store = MemoryStore::new();
    let (backend, oddity) = odd(&store, SlowToDescribe::default());
    let locker = Locker::new(backend).unwrap();
    let both = locker.multi_lock(["a", "b"]);
    let locking = tokio::spawn(async move { both.lock().await.map(drop) });
    while !oddity.answering.load(SeqCst) {
        sleep(ms(1)).await;
    }
    let closing = tokio::spawn(async move { locker.close().await });
    sleep(ms(20)).await;
    oddity.closing.store(true, SeqCst);
    let closed = closing.await.unwrap();
    let locked = locking.await.unwrap();
    assert!(locked.is_err());
    assert!(
        closed.is_err() || census(&store).await == 0,
        "the close said that all was released"
    );
}

/// Attempts at many names take effect, and so many replies are lost.
struct LostReplies(AtomicUsize);

#[async_trait]
impl Oddity for LostReplies {
    async fn attempt_all(&self, inner: &Memory, claims: &[Claim]) -> Result<Together> {
        let outcome = inner.attempt_all(claims).await;
        let lost = |n: usize| n.checked_sub(1);
        if self.0.fetch_update(SeqCst, SeqCst, lost).is_ok() {
            return Err(unavailable());
        }
        outcome
    }
}

#[tokio::test(start_paused = true)]
async fn a_patient_call_survives_one_lost_reply_as_it_does_for_one_name() {
    for lost in 1..3 {
        let store = MemoryStore::new();
        let (backend, _) = odd(&store, LostReplies(AtomicUsize::new(lost)));
        let locker = Locker::new(backend).unwrap();
        let guard = locker.multi_lock(["a", "b"]).ttl(TTL).lock().await;
        let _ = guard.unwrap().unlock().await.unwrap();
        sleep(ms(100)).await;
        assert_eq!(census(&store).await, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_patient_call_survives_one_lost_reply_at_another_locker() {
    let (one, two) = (MemoryStore::new(), MemoryStore::new());
    let (backend, faults) = faulty(&two);
    let (one, other) = (
        Locker::new(one.backend()).unwrap(),
        Locker::new(backend).unwrap(),
    );
    faults.lost_attempts.store(1, SeqCst);
    let both = MultiLock::across([one.mutex("a"), other.mutex("b")]);
    let guard = both.wait(TTL).lock().await.unwrap();
    assert!(guard.is_held());
    let _ = guard.unlock().await.unwrap();
    assert_eq!(census(&two).await, 0);
}

/// Takes one name at a time, slowly.
struct SlowOneByOne;

#[async_trait]
impl Oddity for SlowOneByOne {
    async fn attempt(&self, inner: &mut dyn Ticket) -> Result<Attempt> {
        sleep(Duration::from_secs(8)).await;
        inner.attempt().await
    }

    async fn attempt_all(&self, _: &Memory, _: &[Claim]) -> Result<Together> {
        Ok(Together::OneByOne)
    }
}

#[tokio::test(start_paused = true)]
async fn the_deadline_is_kept_within_the_time_of_one_call_however_many_names() {
    let slow = || Locker::new(odd(&MemoryStore::new(), SlowOneByOne).0).unwrap();
    let fast = Locker::new(Memory::new()).unwrap();
    let names = ["a", "b", "c", "d", "e", "f"];
    let here = slow().multi_lock(names);
    let there = MultiLock::across(
        [fast.mutex("a")]
            .into_iter()
            .chain(names.map(|n| slow().mutex(n))),
    );
    let there_together = {
        let slow = slow();
        MultiLock::across(
            [fast.mutex("x")]
                .into_iter()
                .chain(names.map(|n| slow.mutex(n))),
        )
    };
    for lock in [here, there, there_together] {
        let start = TokioInstant::now();
        assert!(lock.wait(ms(1_000)).lock().await.is_err());
        let took = start.elapsed();
        assert!(took < Duration::from_secs(12), "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_free_set_of_names_is_taken_however_short_the_wait() {
    let stores = [MemoryStore::new(), MemoryStore::new(), MemoryStore::new()];
    let locks = stores.each_ref().map(|store| {
        let (backend, faults) = faulty(store);
        faults.delay(ms(2));
        Locker::new(backend).unwrap().mutex("a")
    });
    let guard = MultiLock::across(locks).wait(ms(1)).lock().await;
    assert!(guard.unwrap().is_held());
}

#[tokio::test(start_paused = true)]
async fn an_unlock_ends_within_the_time_of_one_call_however_many_parts_hang() {
    let store = MemoryStore::new();
    let (backend, faults) = faulty(&store);
    let locker = Locker::new(backend).unwrap();
    let names = ["a", "b", "c", "d", "e", "f"];
    let guard = locker
        .multi_lock(names)
        .ttl(360 * TTL)
        .lock()
        .await
        .unwrap();
    faults.hang.store(true, SeqCst);
    let start = TokioInstant::now();
    assert!(guard.unlock().await.is_err());
    let took = start.elapsed();
    assert!(took < Duration::from_secs(12), "{took:?}");
}

#[derive(Default)]
struct ReleaseOrder(Mutex<Vec<String>>);

#[async_trait]
impl Oddity for ReleaseOrder {
    async fn release(&self, inner: &Memory, ids: &[HoldId]) -> Vec<Result<Released>> {
        let names = ids.iter().map(|id| id.resource().name().to_string());
        self.0.lock().unwrap().extend(names);
        sleep(ms(10)).await;
        inner.release(ids).await
    }
}

#[tokio::test(start_paused = true)]
async fn parts_are_released_in_reverse_however_the_guard_ends() {
    for how in 0..4 {
        let store = MemoryStore::new();
        let (backend, order) = odd(&store, ReleaseOrder::default());
        let locker = Locker::new(backend).unwrap();
        let guard = locker.multi_lock(["a", "b", "c"]).lock().await.unwrap();
        match how {
            0 => drop(guard),
            1 => drop(guard.unlock().await.unwrap()),
            2 => drop(timeout(ms(1), guard.unlock()).await),
            _ => drop(guard.detach(TTL).await),
        }
        sleep(ms(100)).await;
        assert_eq!(*order.0.lock().unwrap(), ["c", "b", "a"], "{how}");
        assert_eq!(census(&store).await, 0);
    }
}
