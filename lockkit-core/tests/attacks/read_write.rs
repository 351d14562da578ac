//! Changing how a lock is held while something else happens to it.

use crate::odd::*;

/// A change takes effect, and its reply is lost.
#[derive(Default)]
struct LostConversions(AtomicBool);

#[async_trait]
impl Oddity for LostConversions {
    async fn convert(&self, inner: &Memory, id: &HoldId, mode: Mode) -> Result<Converted> {
        sleep(ms(50)).await;
        let outcome = inner.convert(id, mode).await;
        if self.0.load(SeqCst) {
            return Err(unavailable());
        }
        outcome
    }
}

/// Polls a future once, on another thread, in the middle of the wake-up: as a runtime of several
/// threads may.
struct PolledWhenWoken(mpsc::SyncSender<mpsc::SyncSender<()>>);

impl Wake for PolledWhenWoken {
    fn wake(self: Arc<Self>) {
        let (done, polled) = mpsc::sync_channel(1);
        if self.0.send(done).is_ok() {
            let _ = polled.recv_timeout(ms(1_000));
        }
    }
}

#[tokio::test]
async fn a_downgrade_of_unknown_outcome_leaves_no_writer_beside_readers() {
    let store = MemoryStore::new();
    let (backend, oddity) = odd(&store, LostConversions::default());
    let locker = Locker::new(backend).unwrap();
    let me = Owner::new();
    let lock = locker.read_write("a").ttl(TTL).owner(&me);
    let writer = lock.write().lock().await.unwrap();
    oddity.0.store(true, SeqCst);
    let mut downgrading = Box::pin(writer.downgrade());
    let first = std::future::poll_fn(|cx| Poll::Ready(downgrading.as_mut().poll(cx))).await;
    assert!(first.is_pending());
    // Another call of the owner waits for the change to end.
    let (wakes, woken) = mpsc::sync_channel(8);
    let again = lock.write().wait(ms(3_000));
    let runtime = tokio::runtime::Handle::current();
    let (started, start) = mpsc::sync_channel(1);
    let thread = std::thread::spawn(move || {
        let _runtime = runtime.enter();
        let mut waiting = Box::pin(async move { again.lock().await });
        let waker = Waker::from(Arc::new(PolledWhenWoken(wakes)));
        let mut cx = Context::from_waker(&waker);
        let mut outcome = waiting.as_mut().poll(&mut cx);
        started.send(()).unwrap();
        for _ in 0..2 {
            if outcome.is_ready() {
                break;
            }
            let Ok(done) = woken.recv_timeout(ms(2_000)) else {
                break;
            };
            outcome = waiting.as_mut().poll(&mut cx);
            let _ = done.send(());
        }
        outcome
    });
    start.recv().unwrap();
    assert!(downgrading.await.is_err());
    let outcome = tokio::task::spawn_blocking(|| thread.join().unwrap())
        .await
        .unwrap();
    let writes = match &outcome {
        Poll::Ready(Ok(guard)) => guard.is_held() && guard.mode() == Mode::Exclusive,
        _ => false,
    };
    let other = Locker::new(store.backend()).unwrap();
    let reads = other.read_write("a").read().try_lock().await.unwrap();
    assert!(
        !(writes && reads.is_some()),
        "somebody reads while the owner believes to write"
    );
}

#[tokio::test(start_paused = true)]
async fn an_upgrade_of_unknown_outcome_leaves_the_owners_other_guard_a_reader() {
    let store = MemoryStore::new();
    let (backend, oddity) = odd(&store, LostConversions::default());
    let locker = Locker::new(backend).unwrap();
    let other = Locker::new(store.backend()).unwrap();
    let me = Owner::new();
    let lock = locker.read_write("a").ttl(TTL).owner(&me);
    let (one, two) = (
        lock.read().lock().await.unwrap(),
        lock.read().lock().await.unwrap(),
    );
    oddity.0.store(true, SeqCst);
    assert!(one.try_upgrade().await.is_err());
    assert!(two.is_held());
    assert!(
        other
            .read_write("a")
            .write()
            .try_lock()
            .await
            .unwrap()
            .is_none()
    );
    oddity.0.store(false, SeqCst);
    let Upgraded::Writer(writer) = two.try_upgrade().await.unwrap() else {
        panic!("nobody else reads");
    };
    let reader = writer.downgrade().await.unwrap();
    assert!(
        other
            .read_write("a")
            .read()
            .try_lock()
            .await
            .unwrap()
            .is_some()
    );
    let _ = reader.unlock().await.unwrap();
    sleep(ms(100)).await;
    assert_eq!(census(&store).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_downgrade_or_upgrade_that_an_eviction_meets_leaves_nobody_believing() {
    for upgrade in [false, true] {
        let store = MemoryStore::new();
        let (backend, _) = odd(&store, LostConversions::default());
        let locker = Locker::new(backend).unwrap();
        let other = Locker::new(store.backend()).unwrap();
        let lock = locker.read_write("a").ttl(TTL);
        let (guard, changing) = if upgrade {
            (lock.read().lock().await.unwrap(), true)
        } else {
            (lock.write().lock().await.unwrap(), false)
        };
        let id = guard.id().clone();
        let task = tokio::spawn(async move {
            if changing {
                guard.try_upgrade().await.map(|upgraded| match upgraded {
                    Upgraded::Writer(guard) | Upgraded::Reader(guard) => guard,
                })
            } else {
                guard.downgrade().await
            }
        });
        sleep(ms(10)).await;
        let _ = other.evict(&id).await.unwrap();
        let changed = task.await.unwrap();
        assert!(!changed.is_ok_and(|guard| guard.is_held()));
        sleep(ms(100)).await;
        assert_eq!(census(&store).await, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_close_during_a_change_leaves_nothing() {
    for upgrade in [false, true] {
        let store = MemoryStore::new();
        let (backend, _) = odd(&store, LostConversions::default());
        let locker = Locker::new(backend).unwrap();
        let lock = locker.read_write("a").ttl(TTL);
        let task = if upgrade {
            let guard = lock.read().lock().await.unwrap();
            tokio::spawn(async move { guard.try_upgrade().await.map(drop) })
        } else {
            let guard = lock.write().lock().await.unwrap();
            tokio::spawn(async move { guard.downgrade().await.map(drop) })
        };
        sleep(ms(10)).await;
        let closed = locker.close().await;
        drop(task.await.unwrap());
        assert!(closed.is_err() || census(&store).await == 0, "{closed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn owners_rules_hold_after_a_change_of_mode() {
    let store = MemoryStore::new();
    let locker = Locker::new(store.backend()).unwrap();
    let other = Locker::new(store.backend()).unwrap();
    let me = Owner::new();
    let lock = locker.read_write("a").owner(&me);
    let reader = lock.read().lock().await.unwrap();
    let error = lock.write().try_lock().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(reader.is_held());
    let Upgraded::Writer(writer) = reader.try_upgrade().await.unwrap() else {
        panic!("alone");
    };
    let inner = lock.read().lock().await.unwrap();
    assert_eq!(inner.mode(), Mode::Exclusive, "a writer reads as a writer");
    // Refused, and released: the other guard keeps the hold.
    assert!(writer.downgrade().await.is_err());
    assert!(inner.is_held());
    assert!(
        other
            .read_write("a")
            .read()
            .try_lock()
            .await
            .unwrap()
            .is_none()
    );
    let inner = inner.downgrade().await.unwrap();
    assert!(
        other
            .read_write("a")
            .read()
            .try_lock()
            .await
            .unwrap()
            .is_some()
    );
    let more = lock.read().lock().await.unwrap();
    assert_eq!(more.id(), inner.id());
    drop((inner, more));
    sleep(ms(100)).await;
    assert_eq!(census(&store).await, 0);
    assert!(lock.write().try_lock().await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn readers_are_shown_the_last_writers_fence_however_long_ago() {
    let store = MemoryStore::new();
    let locker = Locker::new(store.backend()).unwrap();
    let lock = locker.read_write("a");
    let writer = lock.write().lock().await.unwrap();
    let fence = writer.fence();
    let _ = writer.unlock().await.unwrap();
    for name in ["b", "c"] {
        drop(locker.mutex(name).lock().await.unwrap());
    }
    sleep(360 * TTL).await;
    assert_eq!(lock.read().lock().await.unwrap().fence(), fence);
}
