use std::time::Instant;
use lockkit_core::{Locker, Memory};
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn close_race() {
    let mut slow = 0;
    let start = Instant::now();
    let mut n = 0u32;
    while start.elapsed().as_secs() < 60 && slow < 2 {
        n += 1;
        let locker = Locker::new(Memory::new()).unwrap();
        drop(locker.mutex("a").lock().await.unwrap());
        let t = Instant::now();
        let r = locker.close().await;
        if t.elapsed().as_secs() > 1 { slow += 1; println!("slow close no {n}: {:?} {r:?}", t.elapsed()); }
    }
    println!("{slow} of {n} closes hung");
}
