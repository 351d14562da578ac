//! Every call of every primitive dropped anywhere.

use crate::odd::*;

/// Lets the runtime run between any two steps of a request.
#[derive(Default)]
struct Steps {
    one_by_one: bool,
}

async fn step() {
    for _ in 0..2 {
        tokio::task::yield_now().await;
    }
}

#[async_trait]
impl Oddity for Steps {
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

    async fn extend(&self, inner: &Memory, id: &HoldId, ttl: Duration) -> Renewal {
        step().await;
        let answer = inner.extend(id, ttl).await;
        step().await;
        answer
    }

    async fn attempt_all(&self, inner: &Memory, claims: &[Claim]) -> Result<Together> {
        step().await;
        if self.one_by_one {
            return Ok(Together::OneByOne);
        }
        let outcome = inner.attempt_all(claims).await;
        step().await;
        outcome
    }

    async fn convert(&self, inner: &Memory, id: &HoldId, mode: Mode) -> Result<Converted> {
        step().await;
        let outcome = inner.convert(id, mode).await;
        step().await;
        outcome
    }
}

/// Polls `work` so many times and drops it.
async fn polled<T>(times: usize, work: impl Future<Output = T>) {
    let mut work = pin!(work);
    for _ in 0..times {
        let once = std::future::poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await;
        if once.is_ready() {
            return;
        }
        tokio::task::yield_now().await;
    }
}

async fn call(number: usize, polls: usize, one: &Locker, two: &Locker) {
    let ttl = 360 * TTL;
    let me = Owner::new();
    let lock = one.read_write("a").ttl(ttl).owner(&me);
    match number {
        0 => polled(polls, one.multi_lock(["a", "b", "c"]).ttl(ttl).lock()).await,
        1 => polled(polls, one.multi_lock(["a", "b", "c"]).ttl(ttl).try_lock()).await,
        2 => {
            let locks = [one.mutex("b"), two.mutex("a"), one.mutex("a")];
            polled(polls, MultiLock::across(locks).ttl(ttl).lock()).await;
        }
        3 => {
            let guard = one.multi_lock(["a", "b", "c"]).ttl(ttl).lock().await;
            polled(polls, guard.unwrap().unlock()).await;
        }
        4 => {
            let guard = lock.write().lock().await.unwrap();
            polled(polls, guard.downgrade()).await;
        }
        5 => {
            let guard = lock.read().lock().await.unwrap();
            polled(polls, guard.try_upgrade()).await;
        }
        6 => {
            let permits = one.semaphore("a", 3).ttl(ttl);
            let detached = async {
                let guard = permits.acquire_many(2).await.unwrap();
                let id = guard.detach(ms(50)).await.unwrap();
                one.release(&id).await
            };
            polled(polls, detached).await;
        }
        7 => polled(polls, one.segmented("a", 3).ttl(ttl).lock_any()).await,
        8 => polled(polls, one.latch("a").ttl(ttl).wait_at_most(ms(10))).await,
        9 => {
            let both = async {
                let reader = lock.read().lock().await.unwrap();
                let read = lock.read();
                let (upgraded, again) = tokio::join!(reader.try_upgrade(), read.lock());
                drop((upgraded, again));
            };
            polled(polls, both).await;
        }
        _ => {
            let both = async {
                let writer = lock.write().lock().await.unwrap();
                let write = lock.write();
                let (reader, again) = tokio::join!(writer.downgrade(), write.lock());
                drop((reader, again));
            };
            polled(polls, both).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_call_dropped_after_any_number_of_polls_leaves_nothing() {
    for one_by_one in [false, true] {
        for polls in 0..60 {
            for number in 0..11 {
                let stores = [MemoryStore::new(), MemoryStore::new()];
                let [one, two] = stores
                    .each_ref()
                    .map(|store| Locker::new(odd(store, Steps { one_by_one }).0).unwrap());
                call(number, polls, &one, &two).await;
                sleep(ms(200)).await;
                for store in &stores {
                    assert_eq!(census(store).await, 0, "call {number}, {polls} polls");
                }
                one.close().await.unwrap();
                two.close().await.unwrap();
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_close_at_any_time_tells_the_truth() {
    for one_by_one in [false, true] {
        for polls in 0..40 {
            for number in 0..9 {
                let stores = [MemoryStore::new(), MemoryStore::new()];
                let [one, two] = stores
                    .each_ref()
                    .map(|store| Locker::new(odd(store, Steps { one_by_one }).0).unwrap());
                let (a, b) = (one.clone(), two.clone());
                let task = tokio::spawn(async move { call(number, 1_000, &a, &b).await });
                for _ in 0..polls {
                    tokio::task::yield_now().await;
                }
                one.close().await.unwrap();
                two.close().await.unwrap();
                for store in &stores {
                    assert_eq!(census(store).await, 0, "call {number}, {polls} polls");
                }
                // It fails or not; a failed `unwrap` in it is a good answer.
                drop(task.await);
            }
        }
    }
}
