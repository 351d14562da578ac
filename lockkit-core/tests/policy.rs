//! smoke
use std::time::Duration;
use lockkit_core::*;

#[tokio::test(start_paused = true)]
async fn basic() {
    let store = MemoryStore::new();
    let a = Locker::new(store.backend()).unwrap();
    let b = Locker::new(store.backend()).unwrap();
    let g = a.mutex("x").lock().await.unwrap();
    assert!(b.mutex("x").try_lock().await.unwrap().is_none());
    let t = tokio::spawn({ let b = b.clone(); async move { b.mutex("x").lock().await } });
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert!(g.is_held());
    assert!(!t.is_finished());
    let f = g.fence();
    drop(g);
    let g2 = t.await.unwrap().unwrap();
    assert!(g2.fence() > f);
    let e = a.mutex("x").wait(Duration::from_millis(300)).lock().await.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Timeout);
    assert_eq!(g2.unlock().await.unwrap(), Unlocked::Clean);
    a.close().await.unwrap();
    b.close().await.unwrap();
    assert!(store.backend().list("").await.unwrap().is_empty());
}

#[tokio::test]
async fn speed() {
    let a = Locker::new(Memory::new()).unwrap();
    let m = a.mutex("x");
    for _ in 0..3 {
    let t = std::time::Instant::now();
    for _ in 0..100_000 { let _ = m.lock().await.unwrap().unlock().await.unwrap(); }
    eprintln!("{:?}", t.elapsed()/100_000);
    }
}
