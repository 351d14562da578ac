//! Deadlines and lines under outages and dead clients.

use crate::odd::*;

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
    fn promises(&self, memory: Descriptor) -> Descriptor {
        Descriptor {
            clock: Clock::Boot,
            ..memory
        }
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
