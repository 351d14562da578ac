//! What servers say of themselves, which of them says it, and which of them failed.
#![allow(clippy::unwrap_used, reason = "a test")]

use lockkit_core::{Backend, ErrorKind, Locker, LockerOptions};
use lockkit_redis::Redlock;
use lockkit_servers::redis::{Cluster, Independent, RedisServer};

type Facts = Vec<(&'static str, String)>;

async fn probe(url: &str) -> Facts {
    let backend = lockkit_redis::connect(url).await.unwrap();
    let locker = Locker::with_backend(backend.into(), LockerOptions::default()).unwrap();
    locker.probe().await.unwrap()
}

/// The values of a fact, in the order of the servers.
fn all<'a>(facts: &'a Facts, name: &str) -> Vec<&'a str> {
    let named = facts.iter().filter(|(known, _)| *known == name);
    named.map(|(_, value)| value.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_fact_is_about_a_server_with_an_address() {
    let server = RedisServer::start().unwrap();
    let facts = probe(&server.url()).await;
    assert_eq!(facts[0], ("server", server.address()));
    let facts = probe(&format!("{}?strategy=simple", server.url())).await;
    assert_eq!(facts[0], ("changes by", "scripts".into()));
    assert_eq!(facts[1], ("server", server.address()));

    let cluster = Cluster::start().unwrap();
    let facts = probe(&cluster.url()).await;
    let mut told = all(&facts, "server");
    told.sort_unstable();
    let nodes = cluster.nodes().iter();
    let masters = nodes.filter(|node| node.cli(&["ROLE"]).unwrap().starts_with("master"));
    let mut masters: Vec<_> = masters.map(RedisServer::address).collect();
    masters.sort_unstable();
    assert_eq!(told, masters);
    assert_eq!(all(&facts, "role").len(), masters.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn redlock_says_who_votes_and_who_is_down() {
    let mut servers = Independent::start(3).unwrap();
    let addresses: Vec<_> = servers.servers().iter().map(RedisServer::address).collect();
    let url = format!("{}?timeout=500ms", servers.url());
    let backend = Redlock::connect(&url).await.unwrap();
    let facts = backend.probe().await.unwrap();
    assert_eq!(
        facts[0],
        ("votes", "3 of 3 servers: 1 of them may fail".into())
    );
    assert_eq!(all(&facts, "server"), addresses);
    assert_eq!(all(&facts, "vote"), ["yes"; 3]);
    for persistence in all(&facts, "persistence") {
        assert!(persistence.contains("costs no vote"), "{persistence}");
    }

    servers.servers_mut()[1].kill().unwrap();
    let facts = backend.probe().await.unwrap();
    assert_eq!(facts[0].1, "2 of 3 servers: NONE OF THEM MAY FAIL");
    let down = facts.iter().position(|(name, _)| *name == "state").unwrap();
    assert_eq!(facts[down - 1], ("server", addresses[1].clone()));
    let state = &facts[down].1;
    assert!(state.starts_with("DOWN: "), "{state}");
    assert!(!state.contains("redlock: "), "under its address: {state}");

    servers.servers_mut()[2].kill().unwrap();
    let error = backend.probe().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let said = error.to_string();
    assert!(said.contains("(absent=2 of 3): redlock: "), "{said}");
    assert!(said.contains(&format!("server={}", addresses[1])), "{said}");
    let error = Redlock::connect(&url).await.unwrap_err().to_string();
    assert!(!error.contains("redis: "), "{error}");
    assert!(
        error.contains(&format!("server={}", addresses[1])),
        "{error}"
    );
    backend.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn redlock_says_who_forgot_and_for_how_long() {
    // One of them without a log on disk.
    let mut forgetful = RedisServer::start().unwrap();
    let mut servers = Independent::start(2).unwrap();
    let url = format!("{},{}?max_lease=60s", servers.url(), forgetful.address());
    let backend = Redlock::connect(&url).await.unwrap();
    assert_eq!(all(&backend.probe().await.unwrap(), "vote"), ["yes"; 3]);
    forgetful.restart().unwrap();
    let backend = Redlock::connect(&url).await.unwrap();
    let facts = backend.probe().await.unwrap();
    assert_eq!(facts[0].1, "2 of 3 servers: NONE OF THEM MAY FAIL");
    let votes = all(&facts, "vote");
    assert_eq!(votes[..2], ["yes"; 2]);
    assert!(votes[2].starts_with("NOT FOR ANOTHER "), "{votes:?}");

    servers.servers_mut()[0].kill().unwrap();
    let error = backend.probe().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("(absent=2 of 3)"), "{error}");
    let locker = Locker::new(backend).unwrap();
    let error = locker.mutex("n").try_lock().await.unwrap_err();
    assert!(error.to_string().contains("(server=127."), "{error}");
}
