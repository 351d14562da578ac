//! Every call dropped anywhere.

use crate::odd::*;

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
