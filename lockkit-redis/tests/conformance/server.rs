//! Redis as the conformance suite sees it: each case has a prefix of its own on one server.

use async_trait::async_trait;
use lockkit_core::{Backend, Descriptor, Error, ErrorKind, Resource, Result};
use lockkit_redis::Redis;
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
}

impl Server {
    pub(crate) fn new(variable: &'static str) -> Self {
        Self {
            variable,
            prefix: format!("t{:x}", rand::random::<u64>()),
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

    /// Past the backend, as an operator with `redis-cli` would look at it.
    async fn open(&self) -> Result<MultiplexedConnection> {
        let client = redis::Client::open(self.server()?).map_err(unexpected)?;
        client
            .get_multiplexed_async_connection()
            .await
            .map_err(unexpected)
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

fn unexpected(error: redis::RedisError) -> Error {
    Error::new(ErrorKind::Unexpected, "the test cannot look at the server").because(error)
}

#[async_trait]
impl Harness for Server {
    fn descriptor(&self) -> &Descriptor {
        Redis::descriptor()
    }

    async fn backend(&self) -> Result<Box<dyn Backend>> {
        let url = self.server().map(|_| self.url().unwrap_or_default())?;
        self.backend_at(&url).await
    }

    async fn census(&self) -> Result<Vec<String>> {
        let mut redis = self.open().await?;
        let mut left = Vec::new();
        for key in self.keys(&mut redis).await? {
            let stays = KEPT.iter().any(|kept| key.ends_with(kept));
            // While a latch is closed, who took part belongs to its count.
            let count = format!("{}c", &key[..key.len() - 1]);
            let counting = key.ends_with(".p") && {
                let open: Option<i64> = redis::cmd("HGET")
                    .arg(count)
                    .arg("left")
                    .query_async(&mut redis)
                    .await
                    .map_err(unexpected)?;
                open.is_some_and(|left| left > 0)
            };
            if !stays && !counting {
                left.push(format!("key {key}"));
            }
        }
        let channels: Vec<String> = redis::cmd("PUBSUB")
            .arg("CHANNELS")
            .arg(format!("{}:*", self.prefix))
            .query_async(&mut redis)
            .await
            .map_err(unexpected)?;
        left.extend(channels.iter().map(|channel| format!("channel {channel}")));
        Ok(left)
    }

    async fn expire(&self, resource: &Resource) -> Result<()> {
        let mut redis = self.open().await?;
        let main = resource.key();
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
        Ok(())
    }

    fn url(&self) -> Option<String> {
        let server = self.server().unwrap_or_default();
        Some(format!("{server}?prefix={}", self.prefix))
    }

    async fn backend_at(&self, url: &str) -> Result<Box<dyn Backend>> {
        Ok(Box::new(Redis::connect(url).await?))
    }
}
