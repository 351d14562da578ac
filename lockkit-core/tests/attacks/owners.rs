//! Owners that let go, or are dropped half-way.

use crate::odd::*;

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
