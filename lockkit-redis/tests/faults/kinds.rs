//! Latches, semaphores and read-write locks whose holders or connections fail.

use futures_util::future::join_all;
use lockkit_core::Fence;
use lockkit_testkit::Flow;
use tokio::time::{Instant, sleep};

use crate::rig::*;

#[tokio::test(flavor = "multi_thread")]
async fn who_was_cut_off_when_a_latch_opened_passes_once_it_is_back() {
    let server = server();
    let (proxy, url) = proxied(&server).await;
    let (here, away) = (client(&server).await, locker(&url).await);
    assert!(here.latch("l").try_set(2).await.unwrap());
    let waiters: Vec<_> = (0..5)
        .map(|_| {
            let latch = away.latch("l");
            tokio::spawn(async move { latch.wait().await })
        })
        .collect();
    let latch = here.latch("l").resource().unwrap();
    let line = async || here.inspect(&latch).await.unwrap().waiters.len();
    until("they wait", async || line().await == 5).await;
    assert_eq!(here.latch("l").count_down("a").await.unwrap(), 1);
    assert_eq!(
        here.latch("l").count_down("a").await.unwrap(),
        1,
        "counted twice"
    );
    cut(&proxy).await;
    assert_eq!(here.latch("l").count_down("b").await.unwrap(), 0);
    sleep(ms(300)).await;
    assert!(waiters.iter().all(|waiter| !waiter.is_finished()));
    proxy.pass().await.unwrap();
    for waiter in waiters {
        soon(waiter).await.unwrap().unwrap();
    }
    until("nothing is left but the count", async || {
        cli(&server, &["KEYS", "lk:*latch*"]).ends_with("latch/l.c")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn permits_of_who_has_gone_are_back_a_lease_later_and_no_earlier() {
    let server = server();
    let (proxy, url) = proxied(&server).await;
    let (here, away) = (client(&server).await, locker(&url).await);
    let taken = Instant::now();
    let lost = away
        .semaphore("s", 3)
        .ttl(ms(2_500))
        .acquire_many(2)
        .await
        .unwrap();
    let kept = here
        .semaphore("s", 3)
        .ttl(ms(2_500))
        .acquire()
        .await
        .unwrap();
    cut(&proxy).await;
    let permits = soon(here.semaphore("s", 3).acquire_many(2)).await.unwrap();
    assert!(
        taken.elapsed() >= ms(2_500) - ms(50),
        "too early: {:?}",
        taken.elapsed()
    );
    assert!(!lost.is_held() && kept.is_held());
    assert!(
        here.semaphore("s", 3)
            .try_acquire()
            .await
            .unwrap()
            .is_none()
    );
    proxy.pass().await.unwrap();
    until("it is connected again", async || away.probe().await.is_ok()).await;
    was_lost(lost).await;
    assert!(permits.is_held());
    assert_eq!(here.semaphore("s", 3).available().await.unwrap(), 0);
    let_go(permits).await;
    let_go(kept).await;
    assert_eq!(here.semaphore("s", 3).available().await.unwrap(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_among_readers_that_never_end_is_let_in_after_those_before_it() {
    let server = server();
    let clients = [client(&server).await, client(&server).await];
    let stop = tokio_util::sync::CancellationToken::new();
    let readers = (0..8_u64).map(|reader| {
        let lock = clients[reader as usize % 2]
            .read_write("rw")
            .ttl(ms(20_000))
            .read();
        let stop = stop.clone();
        tokio::spawn(async move {
            let mut reads = 0;
            while !stop.is_cancelled() {
                let guard = lock.lock().await.unwrap();
                sleep(ms(5 + reader)).await;
                let_go(guard).await;
                reads += 1;
            }
            reads
        })
    });
    let readers: Vec<_> = readers.collect();
    sleep(ms(100)).await;
    let mut highest = Fence::new(0);
    for _ in 0..10 {
        let writer = soon(clients[0].read_write("rw").ttl(ms(20_000)).write().lock())
            .await
            .unwrap();
        assert!(writer.fence() > highest, "a fence fell");
        highest = writer.fence();
        assert!(
            clients[1]
                .read_write("rw")
                .read()
                .try_lock()
                .await
                .unwrap()
                .is_none()
        );
        let_go(writer).await;
    }
    stop.cancel();
    for reads in join_all(readers).await {
        assert!(reads.unwrap() > 0, "a reader was never let in");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_has_gone_keeps_a_writer_out_for_no_longer_than_its_lease() {
    let server = server();
    let (proxy, url) = proxied(&server).await;
    let (here, away) = (client(&server).await, locker(&url).await);
    let taken = Instant::now();
    let lost = away
        .read_write("rw")
        .ttl(ms(2_500))
        .read()
        .lock()
        .await
        .unwrap();
    cut(&proxy).await;
    let writer = soon(here.read_write("rw").write().lock()).await.unwrap();
    assert!(
        taken.elapsed() >= ms(2_450),
        "too early: {:?}",
        taken.elapsed()
    );
    assert!(!lost.is_held());
    assert!(writer.fence() > lost.fence());
    let_go(writer).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_latch_whose_setting_was_not_answered_is_set_once_and_says_so() {
    let server = server();
    let (proxy, url) = proxied(&server).await;
    let (here, away) = (client(&server).await, locker(&url).await);
    let (mine, theirs) = (away.latch("l"), here.latch("l"));
    // The server knows the script.
    assert!(away.latch("other").try_set(1).await.unwrap());
    let set_without_an_answer = async || {
        proxy.set_replies(Flow::Swallow);
        mine.try_set(2).await.unwrap_err();
    };
    let back = async || {
        proxy.cut_existing().await;
        proxy.pass().await.unwrap();
        until("it is connected again", async || away.probe().await.is_ok()).await;
    };

    set_without_an_answer().await;
    assert_eq!(theirs.count_down("a").await.unwrap(), 1);
    back().await;
    assert!(!theirs.try_set(2).await.unwrap(), "of somebody else");
    assert!(mine.try_set(2).await.unwrap(), "its own");
    assert_eq!(mine.count().await.unwrap(), Some(1), "counts are undone");
    assert!(!mine.try_set(2).await.unwrap(), "that was another one");
    assert_eq!(theirs.count_down("b").await.unwrap(), 0);

    // It has opened before it is repeated.
    set_without_an_answer().await;
    assert_eq!(theirs.count_down("a").await.unwrap(), 1);
    assert_eq!(theirs.count_down("b").await.unwrap(), 0);
    back().await;
    assert!(mine.try_set(2).await.unwrap(), "its own");
    assert_eq!(mine.count().await.unwrap(), Some(0), "it is closed again");

    // It was set anew before it is repeated.
    set_without_an_answer().await;
    assert_eq!(theirs.count_down("a").await.unwrap(), 1);
    assert_eq!(theirs.count_down("b").await.unwrap(), 0);
    assert!(theirs.try_set(2).await.unwrap());
    back().await;
    assert!(!mine.try_set(2).await.unwrap(), "of somebody else");
}
