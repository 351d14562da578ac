//! RedLock as the conformance suite sees it: each case has a prefix of its own on all servers.

use async_trait::async_trait;
use lockkit_core::{Backend, Descriptor, Error, ErrorKind, Resource, Result};
use lockkit_redis::Redlock;
use lockkit_servers::redis::env::REDLOCK;
use lockkit_testkit::Harness;
use redis::aio::MultiplexedConnection;

/// Several servers.
#[derive(Clone, Debug)]
pub(crate) struct Servers {
    /// The URL of clients.
    pub(crate) url: String,
    /// The URLs of somebody who may do everything, one for each server.
    pub(crate) operator: Vec<String>,
}

/// A corner of all servers: a prefix of its own.
#[derive(Debug)]
pub(crate) struct Corner {
    prefix: String,
    servers: Option<Servers>,
}

impl Corner {
    /// On the servers that are there for all tests.
    #[allow(dead_code, reason = "not every program uses these servers")]
    pub(crate) fn new() -> Self {
        let operator = |url: &String| {
            let hosts = url.trim_start_matches("redlock://").split(',');
            hosts.map(|host| format!("redis://{host}")).collect()
        };
        let servers = std::env::var(REDLOCK).ok().map(|url| Servers {
            operator: operator(&url),
            url,
        });
        Self::of(servers)
    }

    /// On these.
    pub(crate) fn of(servers: Option<Servers>) -> Self {
        Self {
            prefix: format!("t{:x}", rand::random::<u64>()),
            servers,
        }
    }

    fn servers(&self) -> Result<&Servers> {
        self.servers.as_ref().ok_or_else(|| {
            let message = format!(
                "{REDLOCK} is not set; run `cargo xtask test`, or `cargo xtask servers up redis`"
            );
            Error::new(ErrorKind::InvalidConfig, message)
        })
    }

    fn at(&self, servers: &Servers) -> String {
        let and = if servers.url.contains('?') { '&' } else { '?' };
        format!("{}{and}prefix={}", servers.url, self.prefix)
    }

    /// Past the backend, as an operator with `redis-cli` would look at each server.
    async fn open(&self) -> Result<Vec<MultiplexedConnection>> {
        let mut servers = Vec::new();
        for url in &self.servers()?.operator {
            let client = redis::Client::open(url.as_str()).map_err(unexpected)?;
            let server = client.get_multiplexed_async_connection().await;
            servers.push(server.map_err(unexpected)?);
        }
        Ok(servers)
    }

    async fn keys(&self, server: &mut MultiplexedConnection) -> Result<Vec<String>> {
        let (mut keys, mut cursor) = (Vec::new(), 0_u64);
        loop {
            let mut scan = redis::cmd("SCAN");
            let scan = scan.arg(cursor).arg("MATCH");
            let scan = scan
                .arg(format!("{}:*", self.prefix))
                .arg("COUNT")
                .arg(1000);
            let (next, some): (u64, Vec<String>) =
                scan.query_async(server).await.map_err(unexpected)?;
            keys.extend(some);
            cursor = next;
            if cursor == 0 {
                return Ok(keys);
            }
        }
    }
}

fn unexpected(error: redis::RedisError) -> Error {
    Error::new(ErrorKind::Unexpected, "the test cannot look at the servers").because(error)
}

#[async_trait]
impl Harness for Corner {
    fn descriptor(&self) -> &Descriptor {
        Redlock::descriptor()
    }

    async fn backend(&self) -> Result<Box<dyn Backend>> {
        let url = self.servers().map(|servers| self.at(servers))?;
        self.backend_at(&url).await
    }

    async fn census(&self) -> Result<Vec<String>> {
        let mut left = Vec::new();
        for (at, server) in self.open().await?.iter_mut().enumerate() {
            // The counters of the node stay on purpose.
            let keys = self.keys(server).await?.into_iter();
            let keys = keys.filter(|key| !key.ends_with(":redlock/node"));
            left.extend(keys.map(|key| format!("key {key} on server {at}")));
            let channels: Vec<String> = redis::cmd("PUBSUB")
                .arg("CHANNELS")
                .arg(format!("{}:*", self.prefix))
                .query_async(server)
                .await
                .map_err(unexpected)?;
            left.extend(channels.iter().map(|channel| format!("channel {channel}")));
        }
        Ok(left)
    }

    async fn expire(&self, resource: &Resource) -> Result<()> {
        for server in &mut self.open().await? {
            for key in self.keys(server).await? {
                if key.ends_with(&format!("}}:redlock/{}", resource.key())) {
                    let deleted = redis::cmd("DEL").arg(key).query_async(server).await;
                    let () = deleted.map_err(unexpected)?;
                }
            }
        }
        Ok(())
    }

    fn url(&self) -> Option<String> {
        self.servers.as_ref().map(|servers| self.at(servers))
    }

    async fn backend_at(&self, url: &str) -> Result<Box<dyn Backend>> {
        Ok(Box::new(Redlock::connect(url).await?))
    }
}
