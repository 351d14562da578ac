//! What the tests of RedLock share: servers that forget when they are killed, and claims.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "part of several tests, each of which uses some of it"
)]

use std::time::Duration;

use lockkit_core::{
    Attempt, AttemptId, Backend, Claim, Grant, Label, LockName, Mode, Order, Primitive, Released,
    Renewal, Resource, Result,
};
use lockkit_redis::Redlock;
use lockkit_servers::redis::RedisServer;

/// Long enough for a loaded machine; a test that waits for it has failed.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Several servers without a memory of their own, on loopback.
pub struct Nodes(pub Vec<RedisServer>);

impl Nodes {
    pub fn start(count: usize) -> Self {
        let servers = (0..count).map(|_| RedisServer::start().unwrap());
        Self(servers.collect())
    }

    pub fn url(&self, options: &str) -> String {
        let addresses: Vec<String> = self.0.iter().map(RedisServer::address).collect();
        format!("redlock://{}?{options}", addresses.join(","))
    }

    pub async fn client(&self, options: &str) -> Redlock {
        Redlock::connect(&self.url(options)).await.unwrap()
    }

    /// Which servers have a hold.
    pub fn holding(&self) -> Vec<bool> {
        let has = |server: &RedisServer| {
            let keys = server
                .cli(&["KEYS", "*:redlock/mutex/*"])
                .unwrap_or_default();
            keys.contains("redlock/mutex/")
        };
        self.0.iter().map(has).collect()
    }
}

pub fn mutex(name: &str) -> Resource {
    Resource::new(Primitive::Mutex, LockName::new(name).unwrap())
}

pub fn claim(name: &str, ttl: Duration) -> Claim {
    Claim {
        resource: mutex(name),
        mode: Mode::Exclusive,
        order: Order::Barging,
        ttl,
        attempt: AttemptId::random(),
        label: Label::new("test").unwrap(),
        wait: true,
    }
}

/// One round.
pub async fn attempt(backend: &Redlock, claim: &Claim) -> Result<Option<Grant>> {
    match backend.enter(claim.clone())?.attempt().await? {
        Attempt::Held(grant) => Ok(Some(grant)),
        Attempt::Busy { .. } => Ok(None),
    }
}

/// Rounds until it is held.
pub async fn hold(backend: &Redlock, claim: &Claim) -> Grant {
    let mut ticket = backend.enter(claim.clone()).unwrap();
    let rounds = async {
        loop {
            match ticket.attempt().await {
                Ok(Attempt::Held(grant)) => return grant,
                Ok(Attempt::Busy { recheck_after }) => {
                    tokio::time::sleep(recheck_after.unwrap()).await;
                }
                Err(error) if error.is_retryable() => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Err(error) => panic!("{error}"),
            }
        }
    };
    tokio::time::timeout(PATIENCE, rounds).await.unwrap()
}

pub async fn release(backend: &Redlock, claim: &Claim) -> Result<Released> {
    backend.release(&[claim.id()]).await.pop().unwrap()
}

pub async fn renew(backend: &Redlock, claim: &Claim) -> Renewal {
    backend.renew(&[claim.id()]).await.pop().unwrap()
}

/// Waits until something is so.
pub async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let looks = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let done = tokio::time::timeout(PATIENCE, looks).await;
    assert!(done.is_ok(), "never so: {what}");
}
