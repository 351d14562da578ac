//! Renewals: late, early, partial, about something else.

use crate::odd::*;

#[tokio::test(start_paused = true)]
async fn short_leases_that_cannot_be_kept_do_not_take_long_ones_with_them() {
    let store = MemoryStore::new();
    let (backend, faults) = faulty(&store);
    let locker = Locker::new(backend).unwrap();
    let long = locker.mutex("long").ttl(3 * TTL).lock().await.unwrap();
    faults.delay(ms(80));
    let start = TokioInstant::now();
    while start.elapsed() < 12 * TTL {
        // 200 ms is too short for this service; its renewals time out after 67 ms.
        drop(locker.mutex("short").ttl(ms(200)).lock().await);
        let short = locker.mutex("short").ttl(ms(200)).lock().await.unwrap();
        short.lost().await;
        assert!(long.is_held(), "lost after {:?}", start.elapsed());
    }
}

struct Session {
    began: OnceLock<Instant>,
    calls: AtomicUsize,
}

#[async_trait]
impl Oddity for Session {
    /// A session with a heartbeat of its own, twice a lease, that tells when it was last confirmed.
    async fn renew(&self, inner: &Memory, ids: &[HoldId]) -> Vec<Renewal> {
        if self.calls.fetch_add(1, SeqCst) > 1000 {
            pending::<()>().await; // Enough is enough.
        }
        let _ = inner.renew(ids).await;
        let began = *self.began.get().unwrap();
        let lived = Clock::Tokio.now().saturating_duration_since(began);
        let beats = lived.as_millis() / (TTL / 2).as_millis();
        let sent_at = began + (TTL / 2) * u32::try_from(beats).unwrap();
        let renewed = |_: &HoldId| Renewal::Renewed { sent_at, ttl: TTL };
        ids.iter().map(renewed).collect()
    }

    async fn attempt(&self, inner: &mut dyn Ticket) -> Result<Attempt> {
        let _ = self.began.set(Clock::Tokio.now());
        inner.attempt().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_was_confirmed_a_while_ago_is_not_asked_without_a_pause() {
    let oddity = Session {
        began: OnceLock::new(),
        calls: AtomicUsize::new(0),
    };
    let (backend, session) = odd(&MemoryStore::new(), oddity);
    let locker = Locker::new(backend).unwrap();
    let guard = locker.mutex("a").ttl(TTL).lock().await.unwrap();
    sleep(3 * TTL).await;
    let calls = session.calls.load(SeqCst);
    assert!(calls < 100, "{calls} renewals in three leases");
    assert!(guard.is_held());
}

/// Renewals grant a tenth of what was asked for; some of them hang.
struct Shorter {
    calls: AtomicUsize,
    hang: std::ops::Range<usize>,
}

#[async_trait]
impl Oddity for Shorter {
    async fn renew(&self, inner: &Memory, ids: &[HoldId]) -> Vec<Renewal> {
        if self.hang.contains(&self.calls.fetch_add(1, SeqCst)) {
            pending::<()>().await;
        }
        let sent_at = Clock::Tokio.now();
        let _ = inner.renew(ids).await;
        let renewed = |_: &HoldId| Renewal::Renewed {
            sent_at,
            ttl: TTL / 10,
        };
        ids.iter().map(renewed).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_granted_less_is_followed_by_tries_in_its_own_time() {
    let oddity = Shorter {
        calls: AtomicUsize::new(0),
        hang: 1..2,
    };
    let (backend, _) = odd(&MemoryStore::new(), oddity);
    let locker = Locker::new(backend).unwrap();
    let guard = locker.mutex("a").ttl(TTL).lock().await.unwrap();
    // The first renewal, at 3 s, grants one second. The second one hangs. There is time for a
    // third.
    sleep(TTL).await;
    assert!(guard.is_held());
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_granted_less_is_believed_for_what_it_granted() {
    let oddity = Shorter {
        calls: AtomicUsize::new(0),
        hang: 1..usize::MAX,
    };
    let (backend, _) = odd(&MemoryStore::new(), oddity);
    let locker = Locker::new(backend).unwrap();
    let guard = locker.mutex("a").ttl(TTL).lock().await.unwrap();
    sleep(TTL / 2).await;
    assert!(
        !guard.is_held(),
        "the last confirmed lease ended more than half a second ago"
    );
}

struct StaleGone {
    asked: AtomicBool,
    granted: AtomicBool,
}

#[async_trait]
impl Oddity for StaleGone {
    /// The service cannot be reached until a renewal has been asked for.
    async fn attempt(&self, inner: &mut dyn Ticket) -> Result<Attempt> {
        if !self.asked.load(SeqCst) {
            return Err(unavailable());
        }
        let outcome = inner.attempt().await;
        self.granted.store(true, SeqCst);
        outcome
    }

    /// Answers as of now, but the answer is a little late.
    async fn renew(&self, inner: &Memory, ids: &[HoldId]) -> Vec<Renewal> {
        let answers = inner.renew(ids).await;
        self.asked.store(true, SeqCst);
        while !self.granted.load(SeqCst) {
            sleep(ms(1)).await;
        }
        sleep(ms(5)).await;
        answers
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_about_the_place_in_line_says_nothing_about_the_later_hold() {
    let oddity = StaleGone {
        asked: AtomicBool::new(false),
        granted: AtomicBool::new(false),
    };
    let (backend, _) = odd(&MemoryStore::new(), oddity);
    let locker = Locker::new(backend).unwrap();
    let guard = locker.mutex("a").ttl(TTL).lock().await.unwrap();
    sleep(ms(100)).await;
    assert!(guard.is_held(), "the service holds it for us");
}

#[tokio::test(start_paused = true)]
async fn an_eviction_while_the_grant_is_on_its_way_is_not_missed() {
    let store = MemoryStore::new();
    let (backend, faults) = faulty(&store);
    let locker = Locker::new(backend).unwrap();
    let other = Locker::new(store.backend()).unwrap();
    faults.delay(ms(50));
    let mutex = locker.mutex("a").ttl(TTL).wait(TTL);
    let taking = tokio::spawn(async move { mutex.lock().await });
    sleep(ms(75)).await;
    let held = other.list("").await.unwrap();
    other.evict(&held[0].holders[0].id).await.unwrap();
    let successor = other.mutex("a").try_lock().await.unwrap().unwrap();
    let first = taking.await.unwrap();
    let both = first.is_ok_and(|first| first.is_held() && successor.is_held());
    assert!(!both, "two guards of one lock believe in it");
}

#[tokio::test(start_paused = true)]
async fn a_guard_whose_hold_was_released_by_its_id_here_does_not_believe_in_it() {
    let store = MemoryStore::new();
    let locker = Locker::new(store.backend()).unwrap();
    let guard = locker.mutex("a").ttl(TTL).lock().await.unwrap();
    assert_eq!(locker.release(guard.id()).await.unwrap(), Released::Done);
    let successor = locker.mutex("a").try_lock().await.unwrap().unwrap();
    assert!(!(guard.is_held() && successor.is_held()));
}

#[tokio::test(start_paused = true)]
async fn releases_that_failed_together_are_repeated_together() {
    let store = MemoryStore::new();
    let (backend, outage) = odd(&store, CountedOutage::default());
    let locker = Locker::new(backend).unwrap();
    let mut guards = Vec::new();
    for n in 0..2000 {
        guards.push(
            locker
                .mutex(format!("a{n}"))
                .ttl(6 * TTL)
                .lock()
                .await
                .unwrap(),
        );
    }
    drop(guards);
    sleep(3 * TTL).await;
    let calls = outage.calls.load(SeqCst);
    outage.over.store(true, SeqCst);
    sleep(ms(2000)).await;
    assert_eq!(census(&store).await, 0);
    assert!(calls < 200, "{calls} requests in an outage of 30 s");
}
