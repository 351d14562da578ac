//! Another server takes over: by sentinels, or by an operator.

#![allow(clippy::unwrap_used, reason = "tests")]

mod scene;

use std::sync::Arc;
use std::time::{Duration, Instant};

use lockkit_core::{ErrorKind, Locker, LossReason};
use lockkit_servers::redis::{RedisServer, Sentinels};
use scene::{Crowd, PATIENCE, Register, cli, client, connections, eventually, let_go, number};
use tokio::task::block_in_place;
use tokio::time::{sleep, timeout};

const LEASE: Duration = Duration::from_secs(20);

fn sentinels() -> Sentinels {
    block_in_place(Sentinels::start).unwrap()
}

/// A master and its replica, and nobody who watches over them.
fn pair() -> (RedisServer, RedisServer) {
    block_in_place(|| {
        let master = RedisServer::start().unwrap();
        let replica = RedisServer::builder().replica_of(master.port());
        (master, replica.start().unwrap())
    })
}

/// As an operator does it who knows nothing of sentinels.
fn swap(master: &RedisServer, replica: &RedisServer) {
    cli(replica, &["REPLICAOF", "NO", "ONE"]);
    let port = replica.port().to_string();
    cli(master, &["REPLICAOF", "127.0.0.1", &port]);
}

/// Waits until the replica has what the master has.
async fn in_step(master: &RedisServer, replica: &RedisServer) {
    let offset = |server| number(server, "replication", "master_repl_offset");
    let written = offset(master);
    eventually("replicated", || offset(replica) >= written).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_demoted_master_is_left_at_once_and_used_again_when_it_is_one() {
    let (one, other) = pair();
    let locker = client(&one.url(), LEASE).await;
    let before = locker.mutex("m").lock().await.unwrap();
    let fence = before.fence();
    let_go(before).await;

    swap(&one, &other);
    eventually("the old master is a replica", || {
        block_in_place(|| one.is_linked_replica()).unwrap_or(false)
    })
    .await;
    let waiting = tokio::spawn({
        let mutex = locker.mutex("m").wait(Duration::from_secs(60));
        async move { mutex.lock().await }
    });
    let started = Instant::now();
    let error = loop {
        let error = locker.mutex("other").try_lock().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(started.elapsed() < PATIENCE, "no cure: {error}");
        let told = format!("{error} {:?}", error.context().collect::<Vec<_>>());
        if told.contains("redis+sentinel://") {
            break error;
        }
    };
    assert!(started.elapsed() < Duration::from_secs(5), "{error}");
    sleep(Duration::from_secs(2)).await;
    let refused = number(&one, "errorstats", "errorstat_READONLY");
    assert!(refused <= 10, "it was asked {refused} times in vain");

    cli(&one, &["REPLICAOF", "NO", "ONE"]);
    let back = Instant::now();
    let after = timeout(PATIENCE, waiting).await.unwrap().unwrap().unwrap();
    assert!(back.elapsed() < Duration::from_secs(5));
    assert!(after.fence() > fence);
    let_go(after).await;
    locker.close().await.unwrap();
}

/// The one that took over gave out fences, and the old master, which is master again, has not heard
/// of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fences_rise_when_an_old_master_is_back_without_what_its_successor_did() {
    let (one, other) = pair();
    // An idle client has seen nothing of all this, if it was quick; so it looks often.
    let first = client(&format!("{}?heartbeat=100ms", one.url()), LEASE).await;
    let guard = first.mutex("m").lock().await.unwrap();
    let_go(guard).await;
    in_step(&one, &other).await;

    swap(&one, &other);
    eventually("the old master is a replica", || {
        block_in_place(|| one.is_linked_replica()).unwrap_or(false)
    })
    .await;
    one.pause().unwrap();
    cli(&other, &["CLIENT", "KILL", "TYPE", "replica"]);
    let second = client(&other.url(), LEASE).await;
    let meanwhile = second.mutex("m").lock().await.unwrap();
    second.close().await.unwrap();
    drop(other);
    one.resume().unwrap();
    cli(&one, &["REPLICAOF", "NO", "ONE"]);
    sleep(Duration::from_millis(500)).await;

    let mutex = first.mutex("m").wait(PATIENCE);
    let after = mutex.lock().await.unwrap();
    assert!(
        after.fence() > meanwhile.fence(),
        "{:?} after {:?}",
        after.fence(),
        meanwhile.fence()
    );
    let_go(after).await;
    first.close().await.unwrap();
}

/// The first thing that a client asks of a new master need not be a lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fences_rise_where_a_new_master_is_asked_for_something_else_first() {
    let (one, other) = pair();
    let first = client(&one.url(), LEASE).await;
    let kept = first.mutex("m").lock().await.unwrap();
    in_step(&one, &other).await;
    other.pause().unwrap();
    cli(&one, &["CLIENT", "KILL", "TYPE", "replica"]);
    let id = kept.id().clone();
    let_go(kept).await;
    let unheard = first.mutex("m").lock().await.unwrap();
    drop(one);
    other.resume().unwrap();
    cli(&other, &["REPLICAOF", "NO", "ONE"]);

    let second = client(&other.url(), LEASE).await;
    assert!(second.mutex("m").try_lock().await.unwrap().is_none());
    second.release(&id).await.unwrap();
    let next = second.mutex("m").lock().await.unwrap();
    assert!(next.fence() > unheard.fence());
    let_go(next).await;
}

/// Its master passes on what it publishes, also that which reached nobody there and was then given
/// to somebody else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_that_is_heard_at_a_replica_is_not_believed() {
    let (one, other) = pair();
    let register = Register::default();
    let (holder, waiter) = (
        client(&one.url(), LEASE).await,
        client(&one.url(), LEASE).await,
    );
    let held = holder.mutex("m").lock().await.unwrap();
    let wait_at = |locker: &Locker| {
        let mutex = locker.mutex("m").wait(PATIENCE);
        tokio::spawn(async move { Arc::new(mutex.lock().await.unwrap()) })
    };
    let first = wait_at(&waiter);
    sleep(Duration::from_millis(200)).await;
    in_step(&one, &other).await;
    swap(&one, &other);
    eventually("the old master is a replica", || {
        block_in_place(|| one.is_linked_replica()).unwrap_or(false)
    })
    .await;
    let newcomer = client(&other.url(), LEASE).await;
    let second = wait_at(&newcomer);
    sleep(Duration::from_millis(200)).await;
    newcomer.release(held.id()).await.unwrap();
    let second = timeout(PATIENCE, second).await.unwrap().unwrap();
    register.enter(&second).await;
    sleep(Duration::from_millis(500)).await;
    assert!(!first.is_finished(), "it took what was given to another");
    first.abort();
    let second = register.leave(second).await;
    let_go(second).await;
}

/// Replication is asynchronous: a failover may lose a lock that was just granted, and then there are
/// two owners. The old one is told, and their fences tell them apart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_that_loses_a_lock_gives_a_higher_fence_and_the_old_guard_is_lost() {
    let mut all = sentinels();
    let (one, other) = (
        client(&all.url(), LEASE).await,
        client(&all.url(), LEASE).await,
    );
    let register = Register::default();
    let warm = Arc::new(one.mutex("m").lock().await.unwrap());
    register.enter(&warm).await;
    let warm = register.leave(warm).await;
    let_go(warm).await;
    in_step(&all.servers()[0], &all.servers()[1]).await;

    all.servers()[1].pause().unwrap();
    cli(&all.servers()[0], &["CLIENT", "KILL", "TYPE", "replica"]);
    let old = Arc::new(one.mutex("m").lock().await.unwrap());
    register.enter(&old).await;
    all.servers_mut()[0].kill().unwrap();
    all.servers()[1].resume().unwrap();

    let mutex = other.mutex("m").wait(PATIENCE);
    let new = Arc::new(mutex.lock().await.unwrap());
    // Here both may be valid, for as long as the first has not heard of the failover.
    assert!(new.fence() > old.fence());
    let leap = new.fence().get() - old.fence().get();
    assert!(leap >= 1 << 20, "another server process leaps, not {leap}");
    register.enter(&new).await;
    let told = timeout(Duration::from_secs(5), old.lost()).await;
    assert_eq!(told.unwrap(), LossReason::Gone);
    assert!(!old.is_held() && new.is_held());

    let new = register.leave(new).await;
    let_go(new).await;
    one.close().await.unwrap();
    other.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn holders_and_waiters_get_through_failovers() {
    let all = sentinels();
    let (one, other) = (
        client(&all.url(), LEASE).await,
        client(&all.url(), LEASE).await,
    );
    let crowd = Crowd::gather(&all.url(), LEASE, "crowd", 4).await;

    // One where both servers run.
    let guard = one.mutex("m").lock().await.unwrap();
    let waiting = tokio::spawn({
        let mutex = other.mutex("m").wait(Duration::from_secs(60));
        async move { mutex.lock().await }
    });
    crowd.goes_on_for(3).await;
    block_in_place(|| all.fail_over()).unwrap();
    crowd.goes_on_for(3).await;
    assert!(eventually("the guard is believed", || guard.is_held()).await < PATIENCE);
    let_go(guard).await;
    let guard = timeout(PATIENCE, waiting).await.unwrap().unwrap().unwrap();

    // One where the master hangs, and is back later.
    in_step(&all.servers()[1], &all.servers()[0]).await;
    let waiting = tokio::spawn({
        let mutex = one.mutex("m").wait(Duration::from_secs(60));
        async move { mutex.lock().await }
    });
    sleep(Duration::from_millis(100)).await;
    all.servers()[1].pause().unwrap();
    block_in_place(|| all.await_failover_from(1)).unwrap();
    crowd.goes_on_for(3).await;
    all.servers()[1].resume().unwrap();
    crowd.goes_on_for(3).await;
    assert!(eventually("the guard is believed", || guard.is_held()).await < PATIENCE);
    let_go(guard).await;
    let guard = timeout(PATIENCE, waiting).await.unwrap().unwrap().unwrap();
    crowd.goes_on_for(3).await;
    let_go(guard).await;

    // No fence was given twice; a lock that was not replicated yet may have had two owners.
    crowd.disperse().await;
    one.close().await.unwrap();
    other.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_clients_follow_a_failover_by_themselves_at_once() {
    let all = sentinels();
    let mut idle = Vec::new();
    for _ in 0..12 {
        idle.push(client(&all.url(), LEASE).await);
    }
    assert_eq!(connections(&all.servers()[0]), 12);
    cli(&all.sentinels()[0], &["SENTINEL", "FAILOVER", "lockkit"]);
    eventually("another master", || {
        block_in_place(|| all.master()).is_ok_and(|master| master == 1)
    })
    .await;
    // The old master is demoted only after 8 s, and takes writes until then.
    let took = eventually("all clients at the new master", || {
        connections(&all.servers()[1]) == 12
    })
    .await;
    assert!(took < Duration::from_secs(4), "{took:?}");
    for locker in idle {
        locker.close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_is_heard_of_where_the_first_sentinel_is_down() {
    let mut all = sentinels();
    all.sentinels_mut()[0].kill().unwrap();
    let locker = client(&all.url(), LEASE).await;
    cli(&all.sentinels()[1], &["SENTINEL", "FAILOVER", "lockkit"]);
    eventually("another master", || {
        block_in_place(|| all.master()).is_ok_and(|master| master == 1)
    })
    .await;
    let took = eventually("the client at the new master", || {
        connections(&all.servers()[1]) == 1
    })
    .await;
    assert!(took < Duration::from_secs(4), "{took:?}");
    locker.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_client_leaves_no_connection_at_any_server_or_sentinel() {
    let all = sentinels();
    let locker = client(&all.url(), Duration::from_secs(1)).await;
    let guard = locker.mutex("m").lock().await.unwrap();
    let count = || -> usize {
        let servers = all.servers().iter().chain(all.sentinels());
        servers.map(connections).sum()
    };
    // For requests, for renewals, and for news of failovers.
    eventually("all connections", || count() == 3).await;
    locker.close().await.unwrap();
    eventually("no connection", || count() == 0).await;
    drop((guard, locker));
}
