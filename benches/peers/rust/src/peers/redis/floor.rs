//! The bare client.

use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use anyhow::{Result, ensure};

use super::url;
use crate::options::Options;
use crate::peers::{Peer, Task};

/// The least that a Redis lock can send. It cannot wait.
pub(crate) struct Floor {
    connection: MultiplexedConnection,
    ttl: Duration,
}

pub(crate) struct FloorTask {
    connection: MultiplexedConnection,
    release: ::redis::Script,
    key: String,
    ttl: Duration,
}

const TOKEN: &str = "token-of-20-bytes---";

impl Peer for Floor {
    type Task = FloorTask;
    async fn connect(options: &Options) -> Result<Self> {
        let connection = ::redis::Client::open(url(&options.server))?
            .get_multiplexed_async_connection()
            .await?;
        Ok(Self {
            connection,
            ttl: options.ttl,
        })
    }
    async fn task(&self, key: &str) -> Result<FloorTask> {
        let release = ::redis::Script::new(
            "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0",
        );
        Ok(FloorTask {
            connection: self.connection.clone(),
            release,
            key: key.into(),
            ttl: self.ttl,
        })
    }
}

impl Task for FloorTask {
    async fn lock(&mut self) -> Result<()> {
        ensure!(self.try_lock().await?, "taken");
        Ok(())
    }
    async fn unlock(&mut self) -> Result<()> {
        let deleted: i64 = self
            .release
            .key(&self.key)
            .arg(TOKEN)
            .invoke_async(&mut self.connection)
            .await?;
        ensure!(deleted == 1, "not held");
        Ok(())
    }
    async fn try_lock(&mut self) -> Result<bool> {
        let mut set = ::redis::cmd("SET");
        set.arg(&self.key)
            .arg(TOKEN)
            .arg("NX")
            .arg("PX")
            .arg(self.ttl.as_millis() as u64);
        let reply: Option<String> = set.query_async(&mut self.connection).await?;
        Ok(reply.is_some())
    }
}
