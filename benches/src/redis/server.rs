//! Looking at a server.

use std::time::Duration;

use anyhow::Result;
use lockkit_servers::redis::RedisServer;
use redis::{Client, Connection};

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection for looking at it.
pub(super) fn connect(server: &RedisServer) -> Result<Connection> {
    let client = Client::open(server.url())?;
    Ok(client.get_connection_with_timeout(PATIENCE)?)
}

/// Makes it forget all keys.
pub(super) fn clear(server: &RedisServer) -> Result<()> {
    Ok(redis::cmd("FLUSHALL").exec(&mut connect(server)?)?)
}
