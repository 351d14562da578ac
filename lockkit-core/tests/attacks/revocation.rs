//! Asking a holder to let go at the worst moment.

use crate::odd::*;

fn mutex(name: &str) -> Resource {
    Resource::new(Primitive::Mutex, LockName::new(name).unwrap())
}

/// Grants take effect, and the answers take a while.
struct SlowAnswers;

#[async_trait]
impl Oddity for SlowAnswers {
    async fn attempt(&self, inner: &mut dyn Ticket) -> Result<Attempt> {
        let outcome = inner.attempt().await;
        sleep(ms(100)).await;
        outcome
    }

    async fn attempt_all(&self, inner: &Memory, claims: &[Claim]) -> Result<Together> {
        let outcome = inner.attempt_all(claims).await;
        sleep(ms(100)).await;
        outcome
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_before_the_grant_is_known_reaches_the_guard() {
    let store = MemoryStore::new();
    let locker = Locker::new(odd(&store, SlowAnswers).0).unwrap();
    let other = Locker::new(store.backend()).unwrap();
    let one = locker.mutex("a");
    let many = locker.multi_lock(["b", "c"]);
    let one = tokio::spawn(async move { one.lock().await });
    let many = tokio::spawn(async move { many.lock().await });
    sleep(ms(50)).await;
    assert_eq!(other.request_release(&mutex("a")).await.unwrap(), 1);
    assert_eq!(other.request_release(&mutex("c")).await.unwrap(), 1);
    for guard in [one.await.unwrap().unwrap(), many.await.unwrap().unwrap()] {
        assert!(guard.is_revocation_requested());
        timeout(ms(1), guard.revocation_requested()).await.unwrap();
        assert!(guard.is_held(), "it is a request");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_between_hand_over_and_its_news_reaches_the_guard() {
    let store = MemoryStore::new();
    let locker = Locker::new(odd(&store, SlowAnswers).0).unwrap();
    let other = Locker::new(store.backend()).unwrap();
    let holder = other.mutex("a").fair().lock().await.unwrap();
    let waiter = locker.mutex("a").fair();
    let waiting = tokio::spawn(async move { waiter.lock().await });
    sleep(ms(150)).await;
    assert_eq!(other.request_release(&mutex("a")).await.unwrap(), 1);
    let _ = holder.unlock().await.unwrap();
    assert_eq!(other.request_release(&mutex("a")).await.unwrap(), 1);
    let guard = waiting.await.unwrap().unwrap();
    assert!(guard.is_revocation_requested());
}

#[tokio::test(start_paused = true)]
async fn a_request_to_those_before_does_not_reach_the_next() {
    let store = MemoryStore::new();
    let locker = Locker::new(store.backend()).unwrap();
    let holder = locker.mutex("a").lock().await.unwrap();
    let waiter = locker.mutex("a");
    let waiting = tokio::spawn(async move { waiter.lock().await });
    sleep(ms(10)).await;
    for _ in 0..2 {
        assert_eq!(locker.request_release(&mutex("a")).await.unwrap(), 1);
    }
    assert!(holder.is_revocation_requested());
    drop(holder);
    let guard = waiting.await.unwrap().unwrap();
    assert!(!guard.is_revocation_requested());
    let asked = timeout(ms(100), guard.revocation_requested()).await;
    assert!(asked.is_err());
}

#[tokio::test(start_paused = true)]
async fn every_reader_is_asked_and_a_change_of_mode_does_not_forget_it() {
    let store = MemoryStore::new();
    let locker = Locker::new(store.backend()).unwrap();
    let lock = locker.read_write("a");
    let resource = Resource::new(Primitive::ReadWrite, LockName::new("a").unwrap());
    let writer = lock.write().lock().await.unwrap();
    assert_eq!(locker.request_release(&resource).await.unwrap(), 1);
    let reader = writer.downgrade().await.unwrap();
    assert!(reader.is_revocation_requested());
    let other = lock.read().lock().await.unwrap();
    assert!(!other.is_revocation_requested());
    assert_eq!(locker.request_release(&resource).await.unwrap(), 2);
    assert!(other.is_revocation_requested());
}
