//! Redis as the conformance suite sees it: each case has a prefix of its own on one server.

use async_trait::async_trait;
use lockkit_core::{Backend, Descriptor, Error, ErrorKind, Resource, Result};
use lockkit_redis::{Redis, Simple};
use lockkit_testkit::Harness;
use redis::aio::MultiplexedConnection;

/// What stays on purpose: the fence counters, the sizes, and the counts of latches that were set.
const KEPT: [&str; 4] = ["}:fence", "}:server", ".z", ".c"];

/// A corner of a server.
#[derive(Debug)]
pub(crate) struct Server {
    /// The environment variable that says where the server is.
    variable: &'static str,
    prefix: String,
    simple: bool,
}

impl Server {
    pub(crate) fn new(variable: &'static str) -> Self {
        Self {
            variable,
            prefix: format!("t{:x}", rand::random::<u64>()),
            simple: false,
        }
    }

    /// The same for `strategy=simple`.
    #[allow(dead_code, reason = "each strategy has a program of its own")]
    pub(crate) fn simple(variable: &'static str) -> Self {
        Self {
            simple: true,
            ..Self::new(variable)
        }
    }

    fn server(&self) -> Result<String> {
        std::env::var(self.variable).map_err(|_| {
            let message = format!(
                "{} is not set; run `cargo xtask test`, or `cargo xtask servers up redis`",
                self.variable
            );
            Error::new(ErrorKind::InvalidConfig, message)
        })
    }

    /// Past the backend, as an operator with `redis-cli` would look at it: each server that takes
    /// writes.
    async fn masters(&self) -> Result<Vec<MultiplexedConnection>> {
        let url = self.server()?;
        let Some((scheme, rest)) = url.split_once("://") else {
            return Err(Error::new(ErrorKind::InvalidConfig, "not a URL"));
        };
        let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
        let first = hosts.split(',').next().unwrap_or_default();
        let addresses = match scheme {
            "redis+sentinel" => {
                let (host, port): (String, u16) = redis::cmd("SENTINEL")
                    .arg("GET-MASTER-ADDR-BY-NAME")
                    .arg(path)
                    .query_async(&mut open(first).await?)
                    .await
                    .map_err(unexpected)?;
                vec![format!("{host}:{port}")]
            }
            "redis+cluster" => {
                type Node = (String, u16, String, Vec<String>);
                let slots: Vec<(u16, u16, Node)> = redis::cmd("CLUSTER")
                    .arg("SLOTS")
                    .query_async::<Vec<Vec<redis::Value>>>(&mut open(first).await?)
                    .await
                    .map_err(unexpected)?
                    .into_iter()
                    .filter_map(|range| {
                        redis::from_redis_value(redis::Value::Array(range[..3].to_vec())).ok()
                    })
                    .collect();
                let masters = slots
                    .into_iter()
                    .map(|(_, _, node)| format!("{}:{}", node.0, node.1));
                masters.collect()
            }
            _ => vec![first.to_owned()],
        };
        let mut masters = Vec::new();
        for address in addresses {
            masters.push(open(&address).await?);
        }
        Ok(masters)
    }

    async fn keys(&self, redis: &mut MultiplexedConnection) -> Result<Vec<String>> {
        let mut keys = Vec::new();
        let mut cursor = 0_u64;
        loop {
            let (next, some): (u64, Vec<String>) = redis::cmd("SCAN")
                .arg(cursor)
                .arg("MATCH")
                .arg(format!("{}:*", self.prefix))
                .arg("COUNT")
                .arg(1000)
                .query_async(redis)
                .await
                .map_err(unexpected)?;
            keys.extend(some);
            cursor = next;
            if cursor == 0 {
                return Ok(keys);
            }
        }
    }
}

async fn open(address: &str) -> Result<MultiplexedConnection> {
    let client = redis::Client::open(format!("redis://{address}")).map_err(unexpected)?;
    client
        .get_multiplexed_async_connection()
        .await
        .map_err(unexpected)
}

/// Whether a key may be there when everything is over.
async fn stays(key: &str, redis: &mut MultiplexedConnection) -> Result<bool> {
    if KEPT.iter().any(|kept| key.ends_with(kept)) {
        return Ok(true);
    }
    let Some(main) = key.strip_suffix('p').filter(|main| main.ends_with('.')) else {
        return Ok(false);
    };
    // While a latch is closed, who took part belongs to its count.
    let left: Option<i64> = redis::cmd("HGET")
        .arg(format!("{main}c"))
        .arg("left")
        .query_async(redis)
        .await
        .map_err(unexpected)?;
    Ok(left.is_some_and(|left| left > 0))
}

fn unexpected(error: redis::RedisError) -> Error {
    Error::new(ErrorKind::Unexpected, "the test cannot look at the server").because(error)
}

#[async_trait]
impl Harness for Server {
    fn descriptor(&self) -> &Descriptor {
        if self.simple {
            Simple::descriptor()
        } else {
            Redis::descriptor()
        }
    }

    async fn backend(&self) -> Result<Box<dyn Backend>> {
        let url = self.server().map(|_| self.url().unwrap_or_default())?;
        self.backend_at(&url).await
    }

    async fn census(&self) -> Result<Vec<String>> {
        let mut left = Vec::new();
        for mut redis in self.masters().await? {
            for key in self.keys(&mut redis).await? {
                if !stays(&key, &mut redis).await? {
                    let ttl: i64 = redis::cmd("PTTL")
                        .arg(&key)
                        .query_async(&mut redis)
                        .await
                        .map_err(unexpected)?;
                    left.push(format!("key {key}, for {ttl} ms"));
                }
            }
            for command in ["CHANNELS", "SHARDCHANNELS"] {
                let channels: Vec<String> = redis::cmd("PUBSUB")
                    .arg(command)
                    .arg(format!("{}:*", self.prefix))
                    .query_async(&mut redis)
                    .await
                    .map_err(unexpected)?;
                left.extend(channels.iter().map(|channel| format!("channel {channel}")));
            }
        }
        Ok(left)
    }

    async fn expire(&self, resource: &Resource) -> Result<()> {
        let main = resource.key();
        for mut redis in self.masters().await? {
            for key in self.keys(&mut redis).await? {
                let held = ["", "h", "x"]
                    .iter()
                    .any(|part| key.ends_with(&format!("}}:{main}{part}")));
                if held {
                    let _: () = redis::cmd("DEL")
                        .arg(key)
                        .query_async(&mut redis)
                        .await
                        .map_err(unexpected)?;
                }
            }
        }
        Ok(())
    }

    fn url(&self) -> Option<String> {
        let server = self.server().unwrap_or_default();
        let strategy = if self.simple { "simple" } else { "direct" };
        Some(format!(
            "{server}?prefix={}&strategy={strategy}",
            self.prefix
        ))
    }

    async fn backend_at(&self, url: &str) -> Result<Box<dyn Backend>> {
        lockkit_redis::connect(url).await
    }
}
