//! Connections that die, hang, and are given up, and grants that have to be on replicas.

#![allow(clippy::unwrap_used, reason = "tests")]

mod scene;

use std::time::{Duration, Instant};

use lockkit_core::{ErrorKind, Locker};
use lockkit_redis::Redis;
use lockkit_servers::redis::RedisServer;
use lockkit_testkit::{Flow, Proxy};
use scene::{PATIENCE, cli, client, connections, eventually, let_go, number};
use tokio::task::block_in_place;
use tokio::time::{sleep, timeout};

const LEASE: Duration = Duration::from_secs(20);

fn server() -> RedisServer {
    block_in_place(RedisServer::start).unwrap()
}

async fn proxy(server: &RedisServer) -> Proxy {
    Proxy::to(([127, 0, 0, 1], server.port())).await.unwrap()
}

fn url(proxy: &Proxy) -> String {
    format!("redis://{}?timeout=300ms&heartbeat=500ms", proxy.address())
}

/// Takes and releases, at the latest when the connection is back.
async fn works(locker: &Locker) {
    let mutex = locker.mutex("probe").wait(PATIENCE);
    let_go(mutex.lock().await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_half_open_connection_is_noticed_by_an_idle_client_and_what_it_held_is_still_held() {
    let server = server();
    let proxy = proxy(&server).await;
    let locker = client(&url(&proxy), LEASE).await;
    let guard = locker.mutex("m").lock().await.unwrap();
    let before = proxy.traffic().connections;
    proxy.set(Flow::Stall);
    // Nobody asks anything: the heartbeat does.
    eventually("another connection", || {
        proxy.traffic().connections > before
    })
    .await;
    proxy.pass().await.unwrap();
    works(&locker).await;
    assert!(eventually("believed", || guard.is_held()).await < PATIENCE);
    let_go(guard).await;
    locker.close().await.unwrap();
    eventually("no connection", || connections(&server) == 0).await;
}

/// Each of these comes while the client shakes hands.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_dies_while_it_is_made_is_made_again() {
    let server = server();
    let proxy = proxy(&server).await;
    let locker = client(&url(&proxy), LEASE).await;
    let guard = locker.mutex("m").lock().await.unwrap();
    for round in 0..40_u64 {
        // Late answers stretch the handshake, so that the next cut falls somewhere into it.
        proxy.set_replies(Flow::Delay(Duration::from_millis(round % 7)));
        proxy.cut_existing().await;
        sleep(Duration::from_millis(5 + round % 23)).await;
    }
    proxy.pass().await.unwrap();
    works(&locker).await;
    assert!(guard.is_held());
    let_go(guard).await;
    locker.close().await.unwrap();
    eventually("no connection", || connections(&server) == 0).await;
}

/// A client that waits hears of its grant though the connection was cut again and again, and is not
/// let in by what an old connection still says.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_is_let_in_at_once_after_any_number_of_cuts() {
    let server = server();
    let proxy = proxy(&server).await;
    let (near, far) = (
        client(&server.url(), LEASE).await,
        client(&url(&proxy), LEASE).await,
    );
    for round in 0..10_u64 {
        let guard = near.mutex("m").wait(PATIENCE).lock().await.unwrap();
        let waiting = tokio::spawn({
            let mutex = far.mutex("m").wait(PATIENCE);
            async move { mutex.lock().await }
        });
        sleep(Duration::from_millis(50)).await;
        proxy.cut_existing().await;
        sleep(Duration::from_millis(round * 3)).await;
        let fence = guard.fence();
        let_go(guard).await;
        let limit = Duration::from_secs(5);
        let next = timeout(limit, waiting).await.expect("it was told");
        let next = next.unwrap().unwrap();
        assert!(next.fence() > fence);
        let_go(next).await;
    }
    near.close().await.unwrap();
    far.close().await.unwrap();
}

/// Closed or dropped, in the middle of whatever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_is_given_up_leaves_neither_connection_nor_task() {
    let server = server();
    let proxy = proxy(&server).await;
    let tasks = || {
        let runtime = tokio::runtime::Handle::current();
        runtime.metrics().num_alive_tasks()
    };
    sleep(Duration::from_millis(200)).await;
    let before = tasks();
    // While the first connection is made.
    proxy.set_replies(Flow::Delay(Duration::from_millis(10)));
    for millis in 0..30 {
        let limit = Duration::from_millis(2 * millis);
        drop(timeout(limit, Redis::connect(&url(&proxy))).await);
    }
    // While another one is made.
    for round in 0..6 {
        proxy.pass().await.unwrap();
        let locker = client(&url(&proxy), LEASE).await;
        let guard = locker.mutex("m").wait(PATIENCE).lock().await.unwrap();
        match round % 3 {
            0 => proxy.cut().await.unwrap(),
            1 => proxy.set(Flow::Stall),
            _ => {}
        }
        sleep(Duration::from_millis(20)).await;
        if round < 3 {
            let closing = Instant::now();
            let _ = timeout(Duration::from_millis(100), locker.close()).await;
            assert!(closing.elapsed() < Duration::from_secs(5));
        }
        drop((guard, locker));
        proxy.pass().await.unwrap();
        cli(&server, &["FLUSHALL"]);
    }
    eventually("no connection", || connections(&server) == 0).await;
    // Those of the proxy end with its connections.
    eventually("no task", || tasks() <= before).await;
}

/// A server that is overwhelmed is not flooded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_answers_nobody_is_tried_about_once_a_second() {
    let server = server();
    let proxy = proxy(&server).await;
    let locker = client(&url(&proxy), LEASE).await;
    proxy.set_replies(Flow::Swallow);
    proxy.cut_existing().await;
    sleep(Duration::from_secs(2)).await;
    let before = proxy.traffic().connections;
    sleep(Duration::from_secs(4)).await;
    let tried = proxy.traffic().connections - before;
    assert!((1..=12).contains(&tried), "{tried} times in 4 s");
    proxy.pass().await.unwrap();
    works(&locker).await;
    locker.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_that_no_replica_has_is_undone_in_time_and_delays_nobody() {
    let master = server();
    let replica = RedisServer::builder().replica_of(master.port());
    let replica = block_in_place(|| replica.start()).unwrap();
    // A replica that has just come along gets nothing for up to a second.
    cli(&master, &["SET", "key", "value"]);
    eventually("the replica gets what is written", || {
        cli(&replica, &["GET", "key"]) == "value"
    })
    .await;
    let careful = format!("{}?replicas=1&timeout=1s", master.url());
    let careful = client(&careful, LEASE).await;
    let other = client(&master.url(), LEASE).await;
    let_go(careful.mutex("m").lock().await.unwrap()).await;

    replica.pause().unwrap();
    let started = Instant::now();
    let refused = tokio::spawn({
        let mutex = careful.mutex("m");
        async move { mutex.try_lock().await }
    });
    sleep(Duration::from_millis(100)).await;
    // The same client meanwhile: what needs no grant is not behind it.
    let mut slowest = Duration::ZERO;
    while !refused.is_finished() {
        let asked = Instant::now();
        careful.probe().await.unwrap();
        slowest = slowest.max(asked.elapsed());
        sleep(Duration::from_millis(10)).await;
    }
    let error = refused.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotReplicated, "{error}");
    assert!(started.elapsed() < Duration::from_secs(5));
    assert!(slowest < Duration::from_millis(500), "{slowest:?}");
    // Undone, long before its lease ends.
    let mutex = other.mutex("m").wait(Duration::from_secs(5));
    let_go(mutex.lock().await.unwrap()).await;

    replica.resume().unwrap();
    let link = || number(&replica, "replication", "master_repl_offset");
    eventually("the replica is back", || {
        link() >= number(&master, "replication", "master_repl_offset")
    })
    .await;
    let_go(careful.mutex("m").wait(PATIENCE).lock().await.unwrap()).await;
    careful.close().await.unwrap();
    other.close().await.unwrap();
}
