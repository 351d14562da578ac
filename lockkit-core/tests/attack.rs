//! Attacks on the policy: what a backend, a caller or a runtime may do at the worst moment.
#![allow(clippy::unwrap_used, reason = "test support")]

mod faulty;

use std::fs::File;
use std::future::{Future, pending};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use async_trait::async_trait;
use faulty::{census, faulty};
use lockkit_core::{
    Attempt, AttemptId, Backend, Claim, Clock, Descriptor, Error, ErrorKind, Grant, Guard, HoldId,
    Instant, Label, LockName, Locker, LockerOptions, LossReason, Memory, MemoryStore, Mode,
    Notices, Order, Owner, Primitive, Released, Renewal, Resource, Result, Snapshot, Ticket,
    Unlocked,
};
use tokio::time::{Instant as TokioInstant, sleep, timeout};

const TTL: Duration = Duration::from_secs(10);

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// What a backend does otherwise than the one in memory.
#[async_trait]
trait Oddity: Send + Sync + 'static {
    fn entered(&self) {}

    fn clock(&self) -> Clock {
        Clock::Tokio
    }

    async fn attempt(&self, inner: &mut dyn Ticket) -> Result<Attempt> {
        inner.attempt().await
    }

    async fn renew(&self, inner: &Memory, ids: &[HoldId]) -> Vec<Renewal> {
        inner.renew(ids).await
    }

    async fn release(&self, inner: &Memory, ids: &[HoldId]) -> Vec<Result<Released>> {
        inner.release(ids).await
    }

    async fn extend(&self, inner: &Memory, id: &HoldId, ttl: Duration) -> Renewal {
        inner.extend(id, ttl).await
    }
}

struct Odd<O> {
    inner: Memory,
    descriptor: Descriptor,
    oddity: Arc<O>,
}

impl<O> std::fmt::Debug for Odd<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Odd")
    }
}

fn odd<O: Oddity>(store: &MemoryStore, oddity: O) -> (Odd<O>, Arc<O>) {
    let oddity = Arc::new(oddity);
    let mut descriptor = Memory::descriptor().clone();
    descriptor.clock = oddity.clock();
    let backend = Odd {
        inner: store.backend(),
        descriptor,
        oddity: Arc::clone(&oddity),
    };
    (backend, oddity)
}

struct OddTicket<O> {
    inner: Box<dyn Ticket>,
    oddity: Arc<O>,
}

impl<O> std::fmt::Debug for OddTicket<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OddTicket")
    }
}

#[async_trait]
impl<O: Oddity> Ticket for OddTicket<O> {
    async fn attempt(&mut self) -> Result<Attempt> {
        self.oddity.attempt(&mut *self.inner).await
    }

    async fn changed(&mut self) {
        self.inner.changed().await;
    }
}

#[async_trait]
impl<O: Oddity> Backend for Odd<O> {
    fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    fn attach(&self, notices: Notices) {
        self.inner.attach(notices);
    }

    fn enter(&self, claim: Claim) -> Result<Box<dyn Ticket>> {
        let inner = self.inner.enter(claim)?;
        self.oddity.entered();
        let oddity = Arc::clone(&self.oddity);
        Ok(Box::new(OddTicket { inner, oddity }))
    }

    async fn renew(&self, ids: &[HoldId]) -> Vec<Renewal> {
        self.oddity.renew(&self.inner, ids).await
    }

    async fn release(&self, ids: &[HoldId]) -> Vec<Result<Released>> {
        self.oddity.release(&self.inner, ids).await
    }

    async fn extend(&self, id: &HoldId, ttl: Duration) -> Renewal {
        self.oddity.extend(&self.inner, id, ttl).await
    }

    async fn inspect(&self, resource: &Resource) -> Result<Snapshot> {
        self.inner.inspect(resource).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Snapshot>> {
        self.inner.list(prefix).await
    }

    async fn evict(&self, id: &HoldId) -> Result<Released> {
        self.inner.evict(id).await
    }

    fn session_file(&self, id: &HoldId) -> Option<File> {
        self.inner.session_file(id)
    }

    async fn probe(&self) -> Result<Vec<(&'static str, String)>> {
        self.inner.probe().await
    }

    async fn close(&self) -> Result<()> {
        self.inner.close().await
    }
}

fn unavailable() -> Error {
    Error::new(ErrorKind::Unavailable, "on purpose")
}

// ---- detach -------------------------------------------------------------------------------

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

// ---- owners -------------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn an_owner_that_let_go_is_forgotten() {
    let locker = Locker::new(Memory::new()).unwrap();
    let size = |locker: &Locker| format!("{locker:?}").len();
    let before = size(&locker);
    for n in 0..100 {
        let guard = locker.mutex("a").owner(&Owner::new()).lock().await.unwrap();
        if n % 2 == 0 {
            drop(guard);
            sleep(ms(1)).await;
        } else {
            let _ = guard.unlock().await.unwrap();
        }
    }
    assert!(
        size(&locker) < before + 1000,
        "{} from {before}",
        size(&locker)
    );
}

#[tokio::test(start_paused = true)]
async fn an_owner_whose_call_was_dropped_is_forgotten() {
    let locker = Locker::new(Memory::new()).unwrap();
    let size = |locker: &Locker| format!("{locker:?}").len();
    let _guard = locker.mutex("a").lock().await.unwrap();
    let before = size(&locker);
    for _ in 0..100 {
        let mutex = locker.mutex("a").owner(&Owner::new());
        assert!(timeout(ms(5), mutex.lock()).await.is_err());
    }
    sleep(ms(5)).await;
    assert!(
        size(&locker) < before + 1000,
        "{} from {before}",
        size(&locker)
    );
}

// ---- the watchdog ---------------------------------------------------------------------------

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

#[derive(Default)]
struct CountedOutage {
    over: AtomicBool,
    calls: AtomicUsize,
}

#[async_trait]
impl Oddity for CountedOutage {
    async fn release(&self, inner: &Memory, ids: &[HoldId]) -> Vec<Result<Released>> {
        if self.over.load(SeqCst) {
            return inner.release(ids).await;
        }
        self.calls.fetch_add(1, SeqCst);
        ids.iter().map(|_| Err(unavailable())).collect()
    }
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

// ---- backends that panic, hang, lie -----------------------------------------------------------

struct PanicsOnce {
    attempt: AtomicBool,
    release: AtomicBool,
}

#[async_trait]
impl Oddity for PanicsOnce {
    async fn attempt(&self, inner: &mut dyn Ticket) -> Result<Attempt> {
        let outcome = inner.attempt().await;
        assert!(!self.attempt.swap(false, SeqCst), "on purpose");
        outcome
    }

    async fn release(&self, inner: &Memory, ids: &[HoldId]) -> Vec<Result<Released>> {
        assert!(!self.release.swap(false, SeqCst), "on purpose");
        inner.release(ids).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_panics_in_an_attempt_leaves_no_hold() {
    let store = MemoryStore::new();
    let oddity = PanicsOnce {
        attempt: AtomicBool::new(true),
        release: AtomicBool::new(false),
    };
    let (backend, _) = odd(&store, oddity);
    let locker = Locker::new(backend).unwrap();
    let mutex = locker.mutex("a").ttl(360 * TTL);
    assert!(
        tokio::spawn(async move { mutex.lock().await })
            .await
            .is_err()
    );
    sleep(TTL).await;
    assert_eq!(census(&store).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_panics_in_a_release_is_asked_again() {
    let store = MemoryStore::new();
    let oddity = PanicsOnce {
        attempt: AtomicBool::new(false),
        release: AtomicBool::new(true),
    };
    let (backend, _) = odd(&store, oddity);
    let locker = Locker::new(backend).unwrap();
    let guard = locker.mutex("a").ttl(360 * TTL).lock().await.unwrap();
    let _ = tokio::spawn(guard.unlock()).await;
    sleep(TTL).await;
    assert_eq!(census(&store).await, 0);
}

#[tokio::test(start_paused = true)]
async fn an_unlock_that_hangs_is_repeated_in_the_background() {
    let store = MemoryStore::new();
    let (backend, faults) = faulty(&store);
    let locker = Locker::new(backend).unwrap();
    let guard = locker.mutex("a").ttl(360 * TTL).lock().await.unwrap();
    faults.hang.store(true, SeqCst);
    let error = guard.unlock().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    faults.hang.store(false, SeqCst);
    sleep(6 * TTL).await;
    assert_eq!(census(&store).await, 0, "an hour's lease stays");
}

#[tokio::test(start_paused = true)]
async fn a_release_that_hangs_does_not_pile_up_tasks() {
    let (backend, faults) = faulty(&MemoryStore::new());
    let locker = Locker::new(backend).unwrap();
    let metrics = tokio::runtime::Handle::current().metrics();
    let guard = locker.mutex("a").ttl(360 * TTL).lock().await.unwrap();
    faults.hang.store(true, SeqCst);
    drop(guard);
    sleep(180 * TTL).await;
    let tasks = metrics.num_alive_tasks();
    assert!(tasks < 20, "{tasks} tasks for one release");
}

struct Garbled(ErrorKind);

#[async_trait]
impl Oddity for Garbled {
    async fn attempt(&self, inner: &mut dyn Ticket) -> Result<Attempt> {
        inner.attempt().await?;
        Err(Error::new(self.0, "the reply makes no sense"))
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_failed_for_any_reason_is_undone() {
    let mut left = Vec::new();
    for kind in [
        ErrorKind::Corrupt,
        ErrorKind::Full,
        ErrorKind::Timeout,
        ErrorKind::Lost,
        ErrorKind::Overloaded,
        ErrorKind::PermissionDenied,
        ErrorKind::Closed,
        ErrorKind::Unexpected,
    ] {
        let store = MemoryStore::new();
        let (backend, _) = odd(&store, Garbled(kind));
        let locker = Locker::new(backend).unwrap();
        let mutex = locker.mutex("a").ttl(360 * TTL);
        assert_eq!(mutex.lock().await.unwrap_err().kind(), kind);
        sleep(ms(100)).await;
        if census(&store).await > 0 {
            left.push(kind);
        }
    }
    assert!(left.is_empty(), "holds are left after {left:?}");
}

struct Stingy;

#[async_trait]
impl Oddity for Stingy {
    async fn renew(&self, _: &Memory, _: &[HoldId]) -> Vec<Renewal> {
        Vec::new()
    }

    async fn release(&self, inner: &Memory, ids: &[HoldId]) -> Vec<Result<Released>> {
        inner.release(&ids[..ids.len().min(1)]).await
    }
}

#[tokio::test(start_paused = true)]
async fn answers_that_are_missing_are_unknown_and_asked_for_again() {
    let store = MemoryStore::new();
    let (backend, _) = odd(&store, Stingy);
    let locker = Locker::new(backend).unwrap();
    let hour = 360 * TTL;
    let a = locker.mutex("a").ttl(hour).lock().await.unwrap();
    let b = locker.mutex("b").ttl(hour).lock().await.unwrap();
    let c = locker.mutex("c").ttl(TTL).lock().await.unwrap();
    assert_eq!(c.lost().await, LossReason::Expired);
    drop((a, b, c));
    locker.close().await.unwrap();
    assert_eq!(census(&store).await, 0);
}

// ---- waiting ------------------------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn a_deadline_that_passes_in_an_outage_is_not_blamed_on_another_holder() {
    let (backend, faults) = faulty(&MemoryStore::new());
    let locker = Locker::new(backend).unwrap();
    faults.lost_attempts.store(usize::MAX, SeqCst);
    let error = locker.mutex("a").wait(ms(500)).lock().await.unwrap_err();
    assert!(
        error.kind() == ErrorKind::Unavailable || !error.to_string().contains("somebody else"),
        "{error}"
    );
}

struct Booted;

#[async_trait]
impl Oddity for Booted {
    fn clock(&self) -> Clock {
        Clock::Boot
    }

    async fn attempt(&self, inner: &mut dyn Ticket) -> Result<Attempt> {
        let sent_at = Clock::Boot.now();
        Ok(match inner.attempt().await? {
            Attempt::Held(grant) => Attempt::Held(Grant { sent_at, ..grant }),
            busy @ Attempt::Busy { .. } => busy,
        })
    }
}

#[tokio::test]
async fn the_shortest_wait_is_one_attempt_at_least() {
    let (backend, _) = odd(&MemoryStore::new(), Booted);
    let locker = Locker::new(backend).unwrap();
    let taken = locker.mutex("a").wait(Duration::from_nanos(1)).lock().await;
    assert!(taken.is_ok(), "nobody holds it: {taken:?}");
}

#[tokio::test(start_paused = true)]
async fn a_place_that_nobody_keeps_does_not_stall_the_line() {
    let store = MemoryStore::new();
    let locker = Locker::new(store.backend()).unwrap();
    let guard = locker.mutex("a").ttl(TTL).lock().await.unwrap();
    // A client that takes a place and ends without a word: its runtime was shut down.
    let dead = store.backend();
    let claim = Claim {
        resource: Resource::new(Primitive::Mutex, LockName::new("a").unwrap()),
        mode: Mode::Exclusive,
        order: Order::Barging,
        ttl: TTL,
        attempt: AttemptId::random(),
        label: Label::new("").unwrap(),
        wait: true,
    };
    let mut ticket = dead.enter(claim).unwrap();
    assert!(matches!(ticket.attempt().await, Ok(Attempt::Busy { .. })));
    drop((ticket, dead));
    let waiting = tokio::spawn({
        let mutex = locker.mutex("a").ttl(TTL);
        async move { mutex.lock().await.unwrap() }
    });
    sleep(ms(10)).await;
    drop(guard);
    let served = timeout(60 * TTL, waiting).await;
    assert!(served.is_ok(), "free for ten minutes, and one who waits");
}

#[tokio::test(start_paused = true)]
async fn an_outage_shorter_than_the_time_to_wait_is_waited_out() {
    let (backend, faults) = faulty(&MemoryStore::new());
    let locker = Locker::new(backend).unwrap();
    faults.lost_attempts.store(usize::MAX, SeqCst);
    let mutex = locker.mutex("a").ttl(TTL).wait(6 * TTL);
    let waiting = tokio::spawn(async move { mutex.lock().await });
    sleep(TTL * 3 / 2).await;
    faults.lost_attempts.store(0, SeqCst);
    let taken = waiting.await.unwrap();
    assert!(taken.is_ok(), "{taken:?}");
}

/// Attempts that take their time.
struct Unhurried;

#[async_trait]
impl Oddity for Unhurried {
    async fn attempt(&self, inner: &mut dyn Ticket) -> Result<Attempt> {
        sleep(ms(50)).await;
        let outcome = inner.attempt().await;
        sleep(ms(50)).await;
        outcome
    }
}

#[tokio::test(start_paused = true)]
async fn withdrawing_a_waiter_of_this_locker_by_its_id_lasts() {
    let store = MemoryStore::new();
    let other = Locker::new(store.backend()).unwrap();
    let _guard = other.mutex("a").ttl(TTL).lock().await.unwrap();
    let (backend, _) = odd(&store, Unhurried);
    let locker = Locker::new(backend).unwrap();
    let mutex = locker.mutex("a");
    let _waiting = tokio::spawn(async move { mutex.lock().await });
    sleep(ms(75)).await;
    let line = other.list("").await.unwrap();
    let id = &line[0].waiters[0].id;
    let released = timeout(TTL, locker.release(id)).await.unwrap();
    assert_eq!(released.unwrap(), Released::Done);
    sleep(6 * TTL).await;
    let line = other.list("").await.unwrap();
    assert!(line[0].waiters.is_empty(), "it is in line again: {line:?}");
}

// ---- closing, dropping, runtimes ------------------------------------------------------------

#[tokio::test(start_paused = true)]
async fn closing_does_not_wait_for_a_waiting_future_that_nobody_polls() {
    let store = MemoryStore::new();
    let locker = Locker::new(store.backend()).unwrap();
    let guard = locker.mutex("a").lock().await.unwrap();
    let mutex = locker.mutex("a");
    let mut waiting = pin!(mutex.lock());
    tokio::select! {
        _ = &mut waiting => unreachable!(),
        () = sleep(ms(10)) => {} // The signal to shut down.
    }
    let _ = guard.unlock().await.unwrap();
    let closed = locker.close().await;
    assert!(closed.is_ok(), "{closed:?}");
}

#[tokio::test(start_paused = true)]
async fn closing_is_not_blamed_for_an_outage_of_long_ago() {
    let store = MemoryStore::new();
    let (backend, outage) = odd(&store, CountedOutage::default());
    let locker = Locker::new(backend).unwrap();
    drop(locker.mutex("a").ttl(ms(500)).lock().await.unwrap());
    sleep(TTL).await;
    outage.over.store(true, SeqCst);
    sleep(360 * TTL).await;
    drop(locker.mutex("b").ttl(ms(500)).lock().await.unwrap());
    let closed = locker.close().await;
    assert!(closed.is_ok(), "{closed:?}");
}

type Hook = Box<dyn Fn() + Send + Sync>;

#[derive(Default)]
struct Hooked(OnceLock<Hook>);

#[async_trait]
impl Oddity for Hooked {
    fn entered(&self) {
        if let Some(hook) = self.0.get() {
            hook();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_begins_while_the_locker_is_closed_leaves_nothing() {
    let store = MemoryStore::new();
    let (backend, hooked) = odd(&store, Hooked::default());
    let locker = Locker::new(backend).unwrap();
    let (closing, runtime) = (locker.clone(), tokio::runtime::Handle::current());
    let hook = move || {
        let (locker, runtime) = (closing.clone(), runtime.clone());
        let close = move || runtime.block_on(async { timeout(ms(2000), locker.close()).await });
        let _ = std::thread::spawn(close).join().unwrap();
    };
    let _ = hooked.0.set(Box::new(hook));
    let mutex = locker.mutex("a").ttl(360 * TTL);
    let taken = tokio::spawn(async move { mutex.lock().await.map(drop) })
        .await
        .unwrap();
    assert_eq!(taken.unwrap_err().kind(), ErrorKind::Closed);
    sleep(ms(200)).await;
    assert_eq!(census(&store).await, 0);
}

/// A guard whose locker's runtime has ended.
fn orphan(store: &MemoryStore, ttl: Duration) -> (Locker, Guard) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let locker = Locker::new(store.backend()).unwrap();
        let guard = locker.mutex("a").ttl(ttl).lock().await.unwrap();
        (locker, guard)
    })
}

#[test]
fn a_loss_is_told_even_after_the_runtime_of_the_locker_ended() {
    let (_locker, guard) = orphan(&MemoryStore::new(), ms(300));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let told = runtime.block_on(async {
        let work = guard.while_held(pending::<()>());
        timeout(ms(3000), work).await.is_ok()
    });
    assert!(!guard.is_held());
    assert!(told, "the work goes on without the lock");
}

#[test]
fn closing_does_not_claim_that_a_release_was_sent_that_nobody_could_send() {
    let store = MemoryStore::new();
    let (locker, guard) = orphan(&store, 360 * TTL);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        drop(guard);
        let closed = timeout(ms(15_000), locker.close()).await.unwrap();
        let left = census(&store).await;
        assert!(closed.is_err() || left == 0, "{closed:?}, and {left} left");
    });
}

/// A waker that lets go of a guard, as an executor does that drops a task where it is woken.
struct LetsGo(Mutex<Option<Guard>>);

impl Wake for LetsGo {
    fn wake(self: Arc<Self>) {
        let guard = self.0.lock().unwrap().take();
        drop(guard);
    }
}

#[test]
fn a_waker_may_drop_a_guard() {
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let store = MemoryStore::new();
            let (backend, faults) = faulty(&store);
            let locker = Locker::new(backend).unwrap();
            let a = locker.mutex("a").lock().await.unwrap();
            let b = locker.mutex("b").lock().await.unwrap();
            let waker = Waker::from(Arc::new(LetsGo(Mutex::new(Some(b)))));
            {
                let mut lost = pin!(a.lost());
                let polled = lost.as_mut().poll(&mut Context::from_waker(&waker));
                assert_eq!(polled, Poll::Pending);
                faults.notices().gone(a.id());
            }
            locker.close().await.unwrap();
        });
        let _ = done.send(());
    });
    assert!(
        is_done.recv_timeout(Duration::from_secs(10)).is_ok(),
        "the watchdog waits for its own table"
    );
}

// ---- cancellation -------------------------------------------------------------------------

/// Lets the runtime run between any two steps of a request.
struct Stepwise;

async fn step() {
    for _ in 0..2 {
        tokio::task::yield_now().await;
    }
}

#[async_trait]
impl Oddity for Stepwise {
    async fn attempt(&self, inner: &mut dyn Ticket) -> Result<Attempt> {
        step().await;
        let outcome = inner.attempt().await;
        step().await;
        outcome
    }

    async fn release(&self, inner: &Memory, ids: &[HoldId]) -> Vec<Result<Released>> {
        step().await;
        let answers = inner.release(ids).await;
        step().await;
        answers
    }
}

/// Polls `work` so many times and drops it; whether it was done by then.
async fn polled<T>(times: usize, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    for _ in 0..times {
        let once = std::future::poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await;
        if let Poll::Ready(done) = once {
            return Some(done);
        }
        tokio::task::yield_now().await;
    }
    None
}

#[tokio::test(start_paused = true)]
async fn every_call_dropped_after_any_number_of_polls_leaves_nothing() {
    for polls in 0..24 {
        for call in 0..6 {
            let store = MemoryStore::new();
            let (backend, _) = odd(&store, Stepwise);
            let locker = Locker::new(backend).unwrap();
            let other = Locker::new(store.backend()).unwrap();
            let me = Owner::new();
            let mutex = locker.mutex("a").ttl(360 * TTL);
            match call {
                0 => drop(polled(polls, mutex.lock()).await),
                1 => drop(polled(polls, mutex.try_lock()).await),
                2 => {
                    let mutex = mutex.owner(&me);
                    let both = async { (mutex.lock().await, mutex.lock().await) };
                    drop(polled(polls, both).await);
                }
                3 => {
                    let held = other.mutex("a").ttl(360 * TTL).lock().await.unwrap();
                    let mut held = Some(held);
                    let release_then_wait = async {
                        let mutex = mutex.fair();
                        tokio::join!(mutex.lock(), async {
                            step().await;
                            step().await;
                            drop(held.take());
                        })
                    };
                    drop(polled(polls, release_then_wait).await);
                    drop(held);
                }
                4 => {
                    let guard = mutex.lock().await.unwrap();
                    drop(polled(polls, guard.unlock()).await);
                }
                _ => {
                    let guard = mutex.lock().await.unwrap();
                    if let Some(Ok(id)) = polled(polls, guard.detach(TTL)).await {
                        locker.release(&id).await.unwrap();
                    }
                }
            }
            sleep(ms(20)).await;
            assert_eq!(census(&store).await, 0, "call {call} after {polls} polls");
            drop(mutex_is_free(&other).await);
            locker.close().await.unwrap();
        }
    }
}

async fn mutex_is_free(locker: &Locker) -> Guard {
    locker.mutex("a").try_lock().await.unwrap().unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_shortest_lease_is_kept() {
    let locker = Locker::new(Memory::new()).unwrap();
    let guard = locker.mutex("a").ttl(ms(10)).lock().await.unwrap();
    sleep(ms(2000)).await;
    assert_eq!(guard.unlock().await.unwrap(), Unlocked::Clean);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn on_many_threads_with_calls_dropped_at_random_one_at_a_time_is_inside() {
    let store = MemoryStore::new();
    let inside = Arc::new(AtomicUsize::new(0));
    let mut options = LockerOptions::default();
    options.ttl = 6 * TTL;
    let lockers: Vec<Locker> = (0..2)
        .map(|_| Locker::with_options(store.backend(), options.clone()).unwrap())
        .collect();
    let workers: Vec<_> = (0..8u64)
        .map(|worker| {
            let (locker, inside) = (lockers[worker as usize % 2].clone(), Arc::clone(&inside));
            tokio::spawn(async move {
                let mut last = 0;
                for round in 0..300u64 {
                    let mutex = locker.mutex("a");
                    let mutex = if round % 3 == 0 { mutex.fair() } else { mutex };
                    let polls = ((round * 7 + worker * 3) % 5) as usize;
                    let guard = match polled(polls, mutex.lock()).await {
                        Some(guard) => guard.unwrap(),
                        None if round % 2 == 0 => continue,
                        None => mutex.lock().await.unwrap(),
                    };
                    assert_eq!(inside.fetch_add(1, SeqCst), 0);
                    tokio::task::yield_now().await;
                    assert!(guard.fence().get() > last, "fences rise");
                    last = guard.fence().get();
                    assert_eq!(inside.fetch_sub(1, SeqCst), 1);
                    if round % 5 == 0 {
                        drop(guard);
                    } else {
                        assert_eq!(guard.unlock().await.unwrap(), Unlocked::Clean);
                    }
                }
            })
        })
        .collect();
    for worker in workers {
        timeout(Duration::from_secs(60), worker)
            .await
            .unwrap()
            .unwrap();
    }
    for locker in lockers {
        locker.close().await.unwrap();
    }
    assert_eq!(census(&store).await, 0);
}
