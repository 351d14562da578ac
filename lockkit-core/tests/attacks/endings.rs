//! Closing, dropping, and runtimes that end.

use crate::odd::*;

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
