//! Connections that end, hang, or answer too late.

use futures_util::future::join_all;
use lockkit_core::{Locker, LockerOptions, LossReason};
use lockkit_redis::Redis;
use lockkit_testkit::Flow;
use tokio::time::{Instant, sleep};

use crate::rig::*;

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_are_killed_all_the_time_strand_nobody_and_let_no_two_in() {
    let server = server();
    let clients = [
        client(&server).await,
        client(&server).await,
        client(&server).await,
    ];
    let register = Register::new();
    let mut operator = raw(&server).await;
    let killing = tokio::spawn(async move {
        for kind in ["normal", "pubsub"].into_iter().cycle() {
            let _: i64 = redis::cmd("CLIENT")
                .arg(&["KILL", "TYPE", kind, "SKIPME", "yes"])
                .query_async(&mut operator)
                .await
                .unwrap();
            sleep(ms(50)).await;
        }
    });
    let uses = clients.iter().flat_map(|client| [client; 4]).map(|client| {
        let (lock, register) = (client.mutex("n").ttl(ms(4_000)), &register);
        async move {
            for _ in 0..8 {
                register.use_once(&lock, ms(1)).await;
            }
        }
    });
    soon(join_all(uses)).await;
    killing.abort();
    register.is_sound();
    assert_eq!(register.uses(), 96);
    // Whatever was on its way when a connection ended has left nothing.
    for client in clients {
        client.close().await.unwrap();
    }
    assert_eq!(cli(&server, &["KEYS", "lk:*mutex*"]), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acquire_whose_answer_is_lost_is_answered_with_the_same_fence_when_repeated() {
    let server = server();
    let (proxy, url) = proxied(&server).await;
    let (locker, other) = (locker(&url).await, client(&server).await);
    // The server knows the script.
    let_go(locker.mutex("n").lock().await.unwrap()).await;
    proxy.set_replies(Flow::Swallow);
    let lock = locker.mutex("n").ttl(ms(20_000));
    let held = tokio::spawn(async move { lock.lock().await });
    let holders = async || other.inspect(&mutex("n")).await.unwrap().holders;
    until("the request has arrived", async || {
        holders().await.len() == 1
    })
    .await;
    let fence = holders().await[0].fence;
    proxy.cut_existing().await;
    proxy.pass().await.unwrap();
    let guard = soon(held).await.unwrap().unwrap();
    assert_eq!(guard.fence(), fence);
    assert_eq!(holders().await.len(), 1);
    let_go(guard).await;
    assert_eq!(holders().await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_whose_answer_is_lost_and_that_is_repeated_frees_nobody_else() {
    let server = server();
    let (proxy, url) = proxied(&server).await;
    let (locker, other) = (locker(&url).await, client(&server).await);
    // The server knows the scripts.
    let_go(locker.mutex("n").lock().await.unwrap()).await;
    let guard = locker.mutex("n").ttl(ms(20_000)).lock().await.unwrap();
    proxy.set_replies(Flow::Swallow);
    let unlocked = tokio::spawn(guard.unlock());
    let next = soon(other.mutex("n").ttl(ms(20_000)).lock()).await.unwrap();
    proxy.cut_existing().await;
    proxy.pass().await.unwrap();
    // It may say that it is not sure; then it goes on in the background.
    let _ = soon(unlocked).await.unwrap();
    until("it is connected again", async || {
        locker.probe().await.is_ok()
    })
    .await;
    assert!(next.is_held());
    let holders = locker.inspect(&mutex("n")).await.unwrap().holders;
    assert_eq!(holders[0].fence, next.fence());
    let_go(next).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_on_which_nothing_arrives_any_more_is_replaced_in_time_for_the_renewal() {
    let server = server();
    let (proxy, url) = proxied(&server).await;
    let locker = locker(&url).await;
    let guard = locker.mutex("n").ttl(ms(6_000)).lock().await.unwrap();
    until("it was renewed", async || proxy.traffic().connections == 2).await;
    proxy.set(Flow::Stall);
    sleep(ms(2_500)).await;
    let before = proxy.traffic().connections;
    assert!(before >= 3, "nobody has tried another connection");
    assert!(guard.is_held());
    proxy.pass().await.unwrap();
    let deadline = guard.valid_until();
    until("it was renewed", async || guard.valid_until() > deadline).await;
    assert!(guard.is_held());
    sleep(ms(5_000)).await;
    assert!(guard.is_held());
    let_go(guard).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_knows_that_its_lease_is_over_though_the_server_says_nothing() {
    let server = server();
    let locker = client(&server).await;
    let register = Register::new();
    let guard = locker.mutex("n").ttl(ms(2_000)).lock().await.unwrap();
    server.pause().unwrap();
    let paused = Instant::now();
    assert_eq!(soon(guard.lost()).await, LossReason::Expired);
    assert!(!guard.is_held());
    sleep(ms(3_000).saturating_sub(paused.elapsed())).await;
    server.resume().unwrap();
    let other = client(&server).await;
    register.use_once(&other.mutex("n"), ms(0)).await;
    assert!(!register.write(&guard), "a stale write was accepted");
    was_lost(guard).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_runtime_takes_down_with_it_is_free_a_lease_later() {
    let server = server();
    let url = server.url();
    let ended = std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let guards = runtime.block_on(async {
            let locker = locker(&url).await;
            let mut guards = Vec::new();
            for number in 0..1_000 {
                let lock = locker.mutex(format!("n{number}")).ttl(ms(3_000));
                guards.push(lock.lock().await.unwrap());
            }
            guards
        });
        let started = std::time::Instant::now();
        runtime.shutdown_background();
        drop(guards);
        started.elapsed()
    });
    let took = tokio::task::block_in_place(|| ended.join().unwrap());
    assert!(took < PATIENCE, "it took {took:?} to let go");
    until("nothing is held", async || {
        cli(&server, &["KEYS", "lk:*mutex*"]).is_empty()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_connection_is_replaced_also_where_core_gives_up_on_a_renewal_first() {
    let server = server();
    let (proxy, url) = proxied(&server).await;
    let url = format!("{url}?timeout=2s&heartbeat=10m");
    let backend = Redis::connect(&url).await.unwrap();
    let mut options = LockerOptions::default();
    options.call_timeout = ms(800);
    let locker = Locker::with_options(backend, options).unwrap();
    let guard = locker.mutex("n").ttl(ms(9_000)).lock().await.unwrap();
    until("it was renewed", async || proxy.traffic().connections == 2).await;
    sleep(ms(200)).await;
    proxy.set(Flow::Stall);
    until("another connection", async || {
        proxy.traffic().connections > 2
    })
    .await;
    // Else it was the release of a hold that has run out that told.
    assert!(guard.is_held());
}
