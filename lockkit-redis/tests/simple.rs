//! `strategy=simple`: a plain key, on servers that allow little.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::time::Duration;

use lockkit_core::{
    Attempt, AttemptId, Backend, Claim, ErrorKind, Guard, HoldId, Label, LockName, Locker,
    LockerOptions, Mode, Notices, Order, Primitive, Released, Renewal, Resource, Unlocked,
};
use lockkit_redis::{Redis, Simple};
use lockkit_servers::redis::{Cluster, RedisServer};
use tokio::time::{sleep, timeout};

const LEASE: Duration = Duration::from_millis(600);
const LONG: Duration = Duration::from_secs(30);
const SOON: Duration = Duration::from_secs(20);

/// A user who may run no script, and hear and say nothing.
const FEW_RIGHTS: &str = "resetkeys resetchannels ~lk:* -@all +hello +auth +ping +info \
    +client|setname +get +set +del +pexpire +pttl +@transaction";

fn n() -> Resource {
    Resource::new(Primitive::Mutex, LockName::new("n").unwrap())
}

async fn locker(url: &str, strategy: &str) -> Locker {
    let joint = if url.contains('?') { '&' } else { '?' };
    let url = format!("{url}{joint}strategy={strategy}");
    let backend = lockkit_redis::connect(&url).await.unwrap();
    Locker::with_backend(backend.into(), LockerOptions::default()).unwrap()
}

async fn holds(locker: &Locker) -> Option<Guard> {
    locker.mutex("n").ttl(LEASE).try_lock().await.unwrap()
}

/// How often each command was called since the last reset, by `redis-cli`'s own count.
fn calls(server: &RedisServer) -> BTreeMap<String, u64> {
    let stats = server.cli(&["INFO", "commandstats"]).unwrap();
    let calls = stats.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        Some((name.to_owned(), rest.split(',').next()?.parse().ok()?))
    });
    calls.collect()
}

fn key(server: &RedisServer) -> String {
    server.cli(&["KEYS", "*mutex/n."]).unwrap().trim().into()
}

#[tokio::test(flavor = "multi_thread")]
async fn both_strategies_exclude_each_other() {
    let server = RedisServer::start().unwrap();
    let (simple, direct) = (
        locker(&server.url(), "simple").await,
        locker(&server.url(), "direct").await,
    );
    for (one, other) in [(&simple, &direct), (&direct, &simple)] {
        let guard = holds(one).await.unwrap();
        assert!(holds(other).await.is_none(), "two holders");
        for locker in [one, other] {
            let holders = locker.inspect(&n()).await.unwrap().holders;
            assert_eq!(holders.len(), 1);
            assert_eq!(holders[0].id, *guard.id());
            assert_eq!(holders[0].label.pid(), std::process::id());
            assert!(holders[0].remaining <= LEASE && !holders[0].detached);
            assert_eq!(locker.list("").await.unwrap().len(), 1);
        }
        let lock = other.mutex("n").ttl(LEASE);
        let waiter = tokio::spawn(async move { lock.lock().await });
        sleep(LEASE * 2).await;
        assert!(!waiter.is_finished() && guard.is_held());
        assert_eq!(guard.unlock().await.unwrap(), Unlocked::Clean);
        let next = timeout(SOON, waiter).await.unwrap().unwrap().unwrap();
        assert!(holds(one).await.is_none(), "two holders");

        // What one detaches, the other shows and lets go.
        let id = next.detach(LONG).await.unwrap();
        let holders = one.inspect(&n()).await.unwrap().holders;
        assert!(holders[0].detached && holders[0].remaining > LEASE);
        assert_eq!(one.release(&id).await.unwrap(), Released::Done);
        drop(holds(other).await.unwrap());
        drop(timeout(SOON, one.mutex("n").lock()).await.unwrap().unwrap());
        while !one.inspect(&n()).await.unwrap().holders.is_empty() {
            sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Everything a mutex can do, and that a foreign value survives it.
async fn works(server: &RedisServer, url: &str) {
    let (a, b) = (locker(url, "simple").await, locker(url, "simple").await);
    let guard = holds(&a).await.unwrap();
    sleep(LEASE * 3).await;
    assert!(guard.is_held(), "not renewed");
    assert!(holds(&b).await.is_none(), "two holders");
    let lock = b.mutex("n").ttl(LEASE);
    let waiter = tokio::spawn(async move { lock.lock().await });
    assert_eq!(guard.unlock().await.unwrap(), Unlocked::Clean);
    let next = timeout(SOON, waiter).await.unwrap().unwrap().unwrap();

    // Taken away, it is lost by the next renewal.
    assert_eq!(a.evict(next.id()).await.unwrap(), Released::Done);
    assert_eq!(a.evict(next.id()).await.unwrap(), Released::NotHeld);
    timeout(SOON, next.lost()).await.unwrap();
    let id = holds(&a).await.unwrap().detach(LONG).await.unwrap();
    let holders = b.inspect(&n()).await.unwrap().holders;
    assert!(holders[0].detached && holders[0].remaining > LEASE * 2);
    assert_eq!(b.release(&id).await.unwrap(), Released::Done);

    // A value of somebody else is left alone, whatever its form.
    let guard = a.mutex("n").ttl(LONG).try_lock().await.unwrap().unwrap();
    let key = key(server);
    let other = holds(&b).await;
    assert!(other.is_none());
    for foreign in ["mine", "1aaaaaaaaaaaaaaaa7:30000:0:-::"] {
        server.cli(&["SET", &key, foreign]).unwrap();
        assert_eq!(a.release(guard.id()).await.unwrap(), Released::NotHeld);
        assert_eq!(server.cli(&["GET", &key]).unwrap(), foreign);
        assert_eq!(server.cli(&["PTTL", &key]).unwrap(), "-1");
    }
    drop(guard);
    sleep(Duration::from_millis(100)).await;
    assert_eq!(server.cli(&["EXISTS", &key]).unwrap(), "1");
    server.cli(&["DEL", &key]).unwrap();
}

async fn changes_by(url: &str) -> String {
    let locker = locker(url, "simple").await;
    drop(holds(&locker).await.unwrap());
    while !locker.inspect(&n()).await.unwrap().is_idle() {
        sleep(Duration::from_millis(10)).await;
    }
    let facts = locker.probe().await.unwrap();
    let how = facts.into_iter().find(|(name, _)| *name == "changes by");
    how.unwrap().1
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_with_few_rights_has_locks() {
    let server = RedisServer::builder()
        .password("root")
        .user("lockkit", "few", FEW_RIGHTS)
        .start()
        .unwrap();
    let url = server.url_of("lockkit", "few");
    works(&server, &url).await;
    assert_eq!(changes_by(&url).await, "transactions");
    // All that was refused are the scripts, once for each client.
    let log = server.cli(&["ACL", "LOG"]).unwrap();
    for command in ["evalsha", "scan", "watch", "publish", "subscribe"] {
        assert_eq!(log.contains(command), command == "evalsha", "{log}");
    }

    let locker = locker(&url, "simple").await;
    let error = locker.list("").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    assert!(error.to_string().contains("+scan"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_script_commands_have_other_names_has_locks() {
    for hidden in ["EVALSHA", "SCRIPT"] {
        let server = RedisServer::builder()
            .config(format!("rename-command {hidden} \"\""))
            .start()
            .unwrap();
        works(&server, &server.url()).await;
        assert_eq!(changes_by(&server.url()).await, "transactions", "{hidden}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_try_is_one_command() {
    let server = RedisServer::start().unwrap();
    let url = format!("{}?heartbeat=10m", server.url());
    let (a, b) = (locker(&url, "simple").await, locker(&url, "simple").await);
    let _guard = a.mutex("n").ttl(LONG).try_lock().await.unwrap().unwrap();
    server.cli(&["CONFIG", "RESETSTAT"]).unwrap();
    for _ in 0..20 {
        assert!(b.mutex("n").try_lock().await.unwrap().is_none());
    }
    let mut calls = calls(&server);
    calls.retain(|name, _| !name.starts_with("config") && name != "info");
    let set = calls.remove("set");
    assert_eq!(set, Some(20));
    assert!(calls.is_empty(), "{calls:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_published_or_heard() {
    let server = RedisServer::start().unwrap();
    works(&server, &server.url()).await;
    assert_eq!(changes_by(&server.url()).await, "scripts");
    let calls = calls(&server);
    let told = |name: &&String| name.contains("publish") || name.contains("subscribe");
    assert_eq!(calls.keys().find(told), None);
    assert!(!calls.contains_key("watch"), "{calls:?}");
}

fn claim() -> Claim {
    Claim {
        resource: n(),
        mode: Mode::Exclusive,
        order: Order::Barging,
        ttl: LONG,
        attempt: AttemptId::random(),
        label: Label::process(),
        wait: true,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_repeated_finds_its_own_hold() {
    let server = RedisServer::start().unwrap();
    let backend = Simple::connect(&server.url()).await.unwrap();
    backend.attach(Notices::default());
    let (claim, other) = (claim(), claim());
    let mut ticket = backend.enter(claim.clone()).unwrap();
    let mut waits = backend.enter(other.clone()).unwrap();
    for _ in 0..3 {
        assert!(matches!(ticket.attempt().await.unwrap(), Attempt::Held(_)));
        server.cli(&["PEXPIRE", &key(&server), "5000"]).unwrap();
        assert!(matches!(ticket.attempt().await.unwrap(), Attempt::Held(_)));
        let left: u64 = server
            .cli(&["PTTL", &key(&server)])
            .unwrap()
            .parse()
            .unwrap();
        assert!(left > 20_000, "the lease was not renewed: {left} ms");
        let busy = waits.attempt().await.unwrap();
        let Attempt::Busy {
            recheck_after: Some(pause),
        } = busy
        else {
            panic!("{busy:?}");
        };
        assert!((30..150).contains(&pause.as_millis()), "{pause:?}");
    }
    // Holds are renewed on the server, and who waits is at no expense.
    let renewals = backend.renew(&[other.id(), claim.id(), other.id()]).await;
    assert!(
        renewals
            .iter()
            .all(|r| matches!(r, Renewal::Renewed { .. })),
        "{renewals:?}"
    );
    let unknown = HoldId::new(n(), AttemptId::random());
    let renewals = backend.renew(&[unknown, claim.id()]).await;
    assert!(
        matches!(renewals[..], [Renewal::Gone, Renewal::Renewed { .. }]),
        "{renewals:?}"
    );
    let released = backend.release(&[claim.id(), claim.id()]).await;
    assert_eq!(released[0].as_ref().unwrap(), &Released::Done);
    assert_eq!(released[1].as_ref().unwrap(), &Released::NotHeld);
    backend.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_was_interfered_with_is_tried_again() {
    let server = RedisServer::builder()
        .config("rename-command EVALSHA \"\"")
        .start()
        .unwrap();
    let (a, b) = (
        Simple::connect(&server.url()).await.unwrap(),
        Simple::connect(&server.url()).await.unwrap(),
    );
    let claim = claim();
    let held = a.enter(claim.clone()).unwrap().attempt().await.unwrap();
    assert!(matches!(held, Attempt::Held(_)));
    let (mut renewed, id) = (0, claim.id());
    for _ in 0..100 {
        let (extended, renewals) =
            tokio::join!(b.extend(&id, LONG), a.renew(std::slice::from_ref(&id)));
        assert!(matches!(extended, Renewal::Renewed { .. }), "{extended:?}");
        renewed += renewals
            .iter()
            .filter(|r| matches!(r, Renewal::Renewed { .. }))
            .count();
    }
    assert_eq!(renewed, 100);
    assert_eq!(b.evict(&id).await.unwrap(), Released::Done);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_it_does_not_have_it_says() {
    let server = RedisServer::start().unwrap();
    let url = server.url();
    let simple = locker(&url, "simple").await;
    assert_eq!(simple.descriptor().driver, "redis-simple");
    assert_eq!(locker(&url, "direct").await.descriptor().driver, "redis");
    let error = simple.request_release(&n()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert_eq!(error.backend(), Some("redis-simple"));
    let error = simple.mutex("n").fair().try_lock().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let error = simple.require(Primitive::Semaphore).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);

    let error = Redis::connect(&format!("{url}?strategy=simple"))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("Simple::connect"), "{error}");
    let error = Simple::connect(&format!("{url}?replicas=1"))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("strategy=direct"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_has_locks_with_and_without_scripts_and_while_a_slot_moves() {
    let cluster = Cluster::start().unwrap();
    for rights in ["+@scripting", "-@scripting"] {
        for node in cluster.nodes() {
            node.cli(&["ACL", "SETUSER", "default", rights]).unwrap();
        }
        let (a, b) = (
            locker(&cluster.url(), "simple").await,
            locker(&cluster.url(), "simple").await,
        );
        let mut guards = Vec::new();
        for number in 0..30 {
            let name = format!("n/{number}");
            guards.push(a.mutex(&name).ttl(LEASE).lock().await.unwrap());
            assert!(b.mutex(&name).try_lock().await.unwrap().is_none());
        }
        sleep(LEASE * 2).await;
        assert_eq!(b.list("n/").await.unwrap().len(), 30);
        for guard in guards {
            assert_eq!(guard.unlock().await.unwrap(), Unlocked::Clean);
        }
        assert!(b.list("").await.unwrap().is_empty());

        // Half-way between two masters, what is new is on the one that takes over.
        let guard = holds(&a).await.unwrap();
        let from = cluster.nodes().iter().find(|node| {
            !key(node).is_empty() && node.cli(&["ROLE"]).unwrap().starts_with("master")
        });
        let from = from.unwrap();
        let slot = from.cli(&["CLUSTER", "KEYSLOT", &key(from)]).unwrap();
        assert_eq!(guard.unlock().await.unwrap(), Unlocked::Clean);
        let to = cluster.nodes().iter().find(|node| {
            node.port() != from.port() && node.cli(&["ROLE"]).unwrap().starts_with("master")
        });
        let to = to.unwrap();
        let id = |node: &RedisServer| node.cli(&["CLUSTER", "MYID"]).unwrap();
        let set = |node: &RedisServer, state: &[&str]| {
            let command = [&["CLUSTER", "SETSLOT", slot.as_str()], state].concat();
            node.cli(&command).unwrap();
        };
        set(to, &["IMPORTING", &id(from)]);
        set(from, &["MIGRATING", &id(to)]);
        let guard = holds(&a).await.unwrap();
        assert!(!key(to).is_empty(), "not where the slot goes");
        sleep(LEASE * 2).await;
        assert!(guard.is_held(), "not renewed");
        assert!(holds(&b).await.is_none(), "two holders");
        assert_eq!(guard.unlock().await.unwrap(), Unlocked::Clean);
        for node in [from, to] {
            set(node, &["STABLE"]);
        }
    }
}

/// What a server was that has been a replica since knows nothing of what it was told as a master.
#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_goes_to_no_other_master_than_everything_else() {
    let server = RedisServer::builder()
        .config("rename-command EVALSHA \"\"")
        .start()
        .unwrap();
    let url = format!("{}?heartbeat=10m", server.url());
    let backend = Simple::connect(&url).await.unwrap();
    let claim = claim();
    let held = backend.enter(claim.clone()).unwrap().attempt().await;
    assert!(matches!(held, Ok(Attempt::Held(_))));
    let id = claim.id();
    let renewed = async || {
        let renewals = backend.renew(std::slice::from_ref(&id)).await;
        matches!(renewals[..], [Renewal::Renewed { .. }])
    };
    assert!(renewed().await);
    let clients = || {
        let list = server.cli(&["CLIENT", "LIST"]).unwrap();
        let clients = list.lines().filter(|line| !line.contains("cmd=client"));
        let clients = clients.map(|line| {
            let id = line.split(' ').next().unwrap().trim_start_matches("id=");
            (id.to_owned(), line.contains("cmd=exec"))
        });
        clients.collect::<BTreeMap<_, _>>()
    };
    let before = clients();
    let transactions: Vec<_> = before.iter().filter(|(_, is_one)| **is_one).collect();
    assert_eq!(transactions.len(), 1, "{before:?}");
    // Another reign begins, and only that connection has been there before.
    server.cli(&["REPLICAOF", "127.0.0.1", "1"]).unwrap();
    server.cli(&["REPLICAOF", "NO", "ONE"]).unwrap();
    for (client, _) in before.iter().filter(|(_, is_one)| !**is_one) {
        server.cli(&["CLIENT", "KILL", "ID", client]).unwrap();
    }
    let give_up = std::time::Instant::now() + SOON;
    while clients().contains_key(transactions[0].0) || !renewed().await {
        assert!(std::time::Instant::now() < give_up, "still on the old one");
        sleep(Duration::from_millis(20)).await;
        let _ = renewed().await;
    }
    backend.close().await.unwrap();
}
