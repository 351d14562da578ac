//! Everything that the tests of the Redis backends need.

use std::thread;

use anyhow::{Result, anyhow};

use super::{Cluster, Independent, RedisServer, Sentinels, acl, env};
use crate::Authority;

/// One of everything, for all tests together: they must leave the servers as they are.
#[derive(Debug)]
pub struct RedisSet {
    single: RedisServer,
    sentinels: Sentinels,
    cluster: Cluster,
    redlock: Independent,
    tls: RedisServer,
    acl: RedisServer,
}

/// A server process of a [`RedisSet`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// What it is there for.
    pub role: &'static str,
    /// Where it listens, on 127.0.0.1.
    pub port: u16,
    /// The number of its process.
    pub pid: u32,
}

impl RedisSet {
    /// Starts them all, side by side.
    ///
    /// # Errors
    ///
    /// If one does not start.
    pub fn start() -> Result<Self> {
        thread::scope(|threads| {
            let sentinels = threads.spawn(Sentinels::start);
            let cluster = threads.spawn(Cluster::start);
            let redlock = threads.spawn(|| Independent::start(5));
            let authority = Authority::new()?;
            Ok(Self {
                single: RedisServer::start()?,
                tls: RedisServer::builder()
                    .tls(&authority, &authority.server()?)?
                    .start()?,
                acl: RedisServer::builder()
                    .password("of-the-administrator")
                    .user(acl::USER, acl::PASSWORD, acl::RULES)
                    .start()?,
                redlock: redlock.join().map_err(|_| panicked())??,
                sentinels: sentinels.join().map_err(|_| panicked())??,
                cluster: cluster.join().map_err(|_| panicked())??,
            })
        })
    }

    /// What tests want to know, by the names in [`mod@env`].
    #[must_use]
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let ca = self.tls.ca().unwrap_or_default();
        vec![
            (env::SINGLE, self.single.url()),
            (env::SENTINEL, self.sentinels.url()),
            (env::CLUSTER, self.cluster.url()),
            (env::REDLOCK, self.redlock.url()),
            (env::TLS, self.tls.url()),
            (env::CA, ca.display().to_string()),
            (env::ACL, self.acl.url_of(acl::USER, acl::PASSWORD)),
        ]
    }

    /// The processes of all servers.
    #[must_use]
    pub fn running(&self) -> Vec<Running> {
        let running = |role, server: &RedisServer| Running {
            role,
            port: server.port(),
            pid: server.pid(),
        };
        let many = |role, servers: &[RedisServer]| -> Vec<_> {
            servers.iter().map(|server| running(role, server)).collect()
        };
        [
            vec![running("single", &self.single)],
            many("sentinel: a server", self.sentinels.servers()),
            many("sentinel", self.sentinels.sentinels()),
            many("cluster", self.cluster.nodes()),
            many("redlock", self.redlock.servers()),
            vec![running("tls", &self.tls), running("acl", &self.acl)],
        ]
        .concat()
    }
}

fn panicked() -> anyhow::Error {
    anyhow!("the thread that starts it has panicked")
}
