//! Backends that panic, hang, or answer with the wrong error.

use crate::odd::*;

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
