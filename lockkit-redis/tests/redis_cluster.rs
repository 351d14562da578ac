//! A cluster that changes while locks are held and waited for.

#![allow(clippy::unwrap_used, reason = "tests")]

mod scene;

use std::time::{Duration, Instant};

use lockkit_core::{Error, ErrorKind, Guard, Locker, Result};
use lockkit_servers::redis::{Cluster, RedisServer};
use scene::{Crowd, PATIENCE, cli, client, connections, eventually, let_go, number, try_client};
use tokio::task::{JoinHandle, block_in_place};
use tokio::time::{sleep, timeout};

/// Long, so that whoever gets on before it ends was told, and did not just look again.
const LEASE: Duration = Duration::from_secs(30);

fn cluster() -> Cluster {
    block_in_place(Cluster::start).unwrap()
}

/// The slot of a lock that is held.
fn slot(cluster: &Cluster, name: &str) -> u16 {
    let is_it = |key: &&str| key.ends_with(&format!("/{name}."));
    let keys = cluster
        .nodes()
        .iter()
        .map(|node| cli(node, &["KEYS", "lk:*"]));
    let keys: Vec<String> = keys.collect();
    let key = keys.iter().flat_map(|keys| keys.lines()).find(is_it);
    block_in_place(|| cluster.slot_of(key.unwrap())).unwrap()
}

fn master(cluster: &Cluster, slot: u16) -> usize {
    block_in_place(|| cluster.master_of(slot)).unwrap()
}

/// Moves a slot to another master.
fn move_away(cluster: &Cluster, slot: u16) {
    block_in_place(|| {
        let from = cluster.master_of(slot).unwrap();
        let mut others = (0..6).filter(|node| *node != from);
        let is_master = |node: &usize| {
            let role = cluster.nodes()[*node].cli(&["ROLE"]).unwrap();
            role.starts_with("master")
        };
        let to = others.find(is_master).unwrap();
        cluster.move_slot(slot, to).unwrap();
    });
}

/// A sum over the nodes that answer.
fn total(cluster: &Cluster, section: &str, name: &str) -> u64 {
    let nodes = cluster.nodes().iter();
    let up = nodes.filter(|node| block_in_place(|| node.cli(&["PING"])).is_ok());
    up.map(|node| number(node, section, name)).sum()
}

fn all_connections(cluster: &Cluster) -> usize {
    cluster.nodes().iter().map(connections).sum()
}

/// Stands in line, for long if it must.
async fn wait_for(locker: &Locker, name: &str) -> JoinHandle<Result<Guard>> {
    let mutex = locker.mutex(name).wait(Duration::from_secs(60));
    let waiting = tokio::spawn(async move { mutex.lock().await });
    sleep(Duration::from_millis(200)).await;
    assert!(!waiting.is_finished());
    waiting
}

/// Lets go; whoever waits must come next within seconds.
async fn hand_over(guard: Guard, waiting: JoinHandle<Result<Guard>>) -> Guard {
    let fence = guard.fence();
    let_go(guard).await;
    let limit = Duration::from_secs(5);
    let next = timeout(limit, waiting).await.expect("it was told");
    let next = next.unwrap().unwrap();
    assert!(next.fence() > fence);
    next
}

async fn close(lockers: impl IntoIterator<Item = Locker>) {
    for locker in lockers {
        locker.close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_stuck_or_let_in_beside_another_while_slots_move() {
    let cluster = cluster();
    let url = cluster.url();
    let (one, other) = (client(&url, LEASE).await, client(&url, LEASE).await);
    let crowd = Crowd::gather(&url, LEASE, "crowd", 4).await;
    let mut guard = one.mutex("m").lock().await.unwrap();
    let (busy, quiet) = (slot(&cluster, "crowd"), slot(&cluster, "m"));
    for round in 0..4 {
        let waiting = wait_for(if round % 2 == 0 { &other } else { &one }, "m").await;
        move_away(&cluster, busy);
        move_away(&cluster, quiet);
        crowd.goes_on_for(2).await;
        assert!(guard.is_held());
        guard = hand_over(guard, waiting).await;
    }
    let_go(guard).await;
    crowd.disperse().await.saw_nothing_wrong().await;
    close([one, other]).await;
}

/// While a slot is on its way, its keys are neither here nor there; that is no reason to knock at every
/// node again and again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_that_is_on_its_way_for_long_floods_nobody() {
    let cluster = cluster();
    let crowd = Crowd::gather(&cluster.url(), LEASE, "crowd", 8).await;
    crowd.goes_on_for(1).await;
    let slot = slot(&cluster, "crowd");
    let from = master(&cluster, slot);
    let is_other = |node: &usize| {
        *node != from && cli(&cluster.nodes()[*node], &["ROLE"]).starts_with("master")
    };
    let to = (0..6).find(is_other).unwrap();
    let number = slot.to_string();
    let id = |node: usize| cli(&cluster.nodes()[node], &["CLUSTER", "MYID"]);
    let set = |node: usize, how: &str, peer: &str| {
        let command = ["CLUSTER", "SETSLOT", &number, how, peer];
        cli(&cluster.nodes()[node], &command);
    };
    let (source, target) = (id(from), id(to));
    let connected = || total(&cluster, "stats", "total_connections_received");
    let before = connected();
    set(to, "IMPORTING", &source);
    set(from, "MIGRATING", &target);
    sleep(Duration::from_secs(1)).await;
    block_in_place(|| cluster.move_slot(slot, to)).unwrap();
    crowd.goes_on_for(2).await;
    let made = connected() - before;
    assert!(made < 200, "{made} connections were made");
    crowd.disperse().await.saw_nothing_wrong().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_is_reached_where_its_slot_has_moved() {
    let cluster = cluster();
    let lease = Duration::from_secs(3);
    let (one, other) = (
        client(&cluster.url(), lease).await,
        client(&cluster.url(), lease).await,
    );
    let guard = one.mutex("m").lock().await.unwrap();
    move_away(&cluster, slot(&cluster, "m"));
    // It renews, and finds that its slot has moved.
    sleep(lease).await;
    assert!(guard.is_held());
    let asked = other.request_release(guard.id().resource()).await.unwrap();
    assert_eq!(asked, 1);
    let heard = timeout(Duration::from_secs(2), guard.revocation_requested()).await;
    assert!(heard.is_ok(), "it was not reached");
    let_go(guard).await;
    close([one, other]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_takes_over_and_nobody_is_stuck_or_let_in_beside_another() {
    let cluster = cluster();
    let url = cluster.url();
    let (one, other) = (client(&url, LEASE).await, client(&url, LEASE).await);
    let crowd = Crowd::gather(&url, LEASE, "crowd", 4).await;
    let mut guard = one.mutex("m").lock().await.unwrap();
    let slots = [slot(&cluster, "crowd"), slot(&cluster, "m")];
    for round in 0..2 {
        let waiting = wait_for(if round % 2 == 0 { &other } else { &one }, "m").await;
        let masters = slots.map(|slot| master(&cluster, slot));
        let old = masters[1];
        for old in std::collections::BTreeSet::from(masters) {
            block_in_place(|| cluster.fail_over(old)).unwrap();
        }
        crowd.goes_on_for(2).await;
        eventually("the guard is believed", || guard.is_held()).await;
        guard = hand_over(guard, waiting).await;
        // What is said at the new master travels to its replicas, too, where it must not be heard.
        let heard = cli(&cluster.nodes()[old], &["PUBSUB", "SHARDCHANNELS"]);
        assert!(heard.trim().is_empty(), "{heard} at a replica");
    }
    let_go(guard).await;
    crowd.disperse().await.saw_nothing_wrong().await;
    close([one, other]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_dies_is_replaced_and_idle_waiters_follow_by_themselves() {
    let mut cluster = cluster();
    let url = cluster.url();
    let long = 3 * LEASE;
    let (one, other) = (client(&url, long).await, client(&url, long).await);
    let crowd = Crowd::gather(&url, LEASE, "crowd", 3).await;
    crowd.goes_on_for(1).await;
    let guard = one.mutex("m").lock().await.unwrap();
    let waiting = wait_for(&other, "m").await;
    let slot = slot(&cluster, "m");
    let old = master(&cluster, slot);
    let replica = block_in_place(|| cluster.replica_of(old)).unwrap();
    sleep(Duration::from_millis(500)).await;
    cluster.nodes_mut()[old].kill().unwrap();
    let started = Instant::now();
    loop {
        let role = cli(&cluster.nodes()[replica], &["ROLE"]);
        let state = cli(&cluster.nodes()[replica], &["CLUSTER", "INFO"]);
        if role.starts_with("master") && state.contains("cluster_state:ok") {
            break;
        }
        assert!(started.elapsed() < PATIENCE);
        // It finds that the cluster is down.
        for name in 0..8 {
            let _ = one.mutex(format!("n{name}")).try_lock().await;
        }
    }
    crowd.goes_on_for(2).await;
    eventually("the guard is believed", || guard.is_held()).await;
    sleep(Duration::from_secs(2)).await;
    let guard = hand_over(guard, waiting).await;

    // Nobody took the outage for a server that does not let clients listen: that one would poll.
    let waiting = wait_for(&one, "m").await;
    let asked = || total(&cluster, "commandstats", "cmdstat_evalsha");
    crowd.disperse().await;
    let before = asked();
    sleep(Duration::from_secs(1)).await;
    let polls = asked() - before;
    assert!(polls < 10, "it polls: {polls} times a second");
    let_go(hand_over(guard, waiting).await).await;
    close([one, other]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_locks_in_several_slots_are_taken_in_any_order_without_deadlock() {
    let cluster = cluster();
    let names = ["a", "b", "c", "d"];
    let backwards = ["d", "c", "b", "a"];
    let one = client(&cluster.url(), LEASE).await;
    let other = client(&cluster.url(), LEASE).await;
    let rounds = |locker: &Locker, names: [&'static str; 4]| {
        let all = locker.multi_lock(names).wait(PATIENCE);
        tokio::spawn(async move {
            for _ in 0..20 {
                let guard = all.lock().await?;
                sleep(Duration::from_millis(1)).await;
                let _ = guard.unlock().await?;
            }
            Ok::<(), Error>(())
        })
    };
    let (first, second) = (rounds(&one, names), rounds(&other, backwards));
    timeout(PATIENCE, first).await.unwrap().unwrap().unwrap();
    timeout(PATIENCE, second).await.unwrap().unwrap().unwrap();

    // One of them is busy: none is kept.
    let busy = other.mutex("c").lock().await.unwrap();
    assert!(one.multi_lock(names).try_lock().await.unwrap().is_none());
    let impatient = one.multi_lock(names).wait(Duration::from_millis(100));
    assert_eq!(
        impatient.lock().await.unwrap_err().kind(),
        ErrorKind::Timeout
    );
    for free in ["a", "b", "d"] {
        let mutex = other.mutex(free).wait(Duration::from_secs(5));
        let_go(mutex.lock().await.unwrap()).await;
    }
    let_go(busy).await;
    close([one, other]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_not_taken_for_a_server_nor_a_server_for_a_cluster() {
    let server = block_in_place(RedisServer::start).unwrap();
    let node = RedisServer::builder().config("cluster-enabled yes");
    let node = block_in_place(|| node.start()).unwrap();

    let error = try_client(&node.url(), LEASE).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidConfig);
    assert!(error.to_string().contains("redis+cluster://"), "{error}");

    let url = format!("redis+cluster://{}", server.address());
    let error = try_client(&url, LEASE).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidConfig);
    assert!(error.to_string().contains("redis://"), "{error}");

    let url = format!("redis+cluster://{}", node.address());
    let error = try_client(&url, LEASE).await.unwrap_err();
    assert!(error.to_string().contains("--cluster create"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_a_cluster_leave_no_connection() {
    let cluster = cluster();
    let closed = client(&cluster.url(), Duration::from_secs(1)).await;
    let dropped = client(&cluster.url(), Duration::from_secs(1)).await;
    let one = closed.mutex("one").lock().await.unwrap();
    let other = dropped.mutex("other").lock().await.unwrap();
    // Two to each master and client, and one more for renewals where something is held.
    eventually("all connections", || all_connections(&cluster) == 14).await;
    closed.close().await.unwrap();
    drop((other, dropped));
    let started = Instant::now();
    eventually("no connection", || all_connections(&cluster) == 0).await;
    assert!(started.elapsed() < Duration::from_secs(10));
    drop((one, closed));
}
