//! Servers that know nothing of each other.

use anyhow::Result;

use super::builder::AppendOnly;
use super::server::RedisServer;

/// Several servers that know nothing of each other, as RedLock wants them. Each writes to disk
/// before it replies, so that a crash forgets nothing.
#[derive(Debug)]
pub struct Independent {
    servers: Vec<RedisServer>,
}

impl Independent {
    /// Starts so many.
    ///
    /// # Errors
    ///
    /// If one does not start.
    pub fn start(servers: usize) -> Result<Self> {
        let server = |_| {
            RedisServer::builder()
                .append_only(AppendOnly::Always)
                .start()
        };
        let servers = (0..servers).map(server).collect::<Result<_>>()?;
        Ok(Self { servers })
    }

    /// `redlock://HOST:PORT,…`.
    #[must_use]
    pub fn url(&self) -> String {
        let addresses: Vec<_> = self.servers.iter().map(RedisServer::address).collect();
        format!("redlock://{}", addresses.join(","))
    }

    /// All of them.
    #[must_use]
    pub fn servers(&self) -> &[RedisServer] {
        &self.servers
    }

    /// All of them, to be stopped and restarted.
    pub fn servers_mut(&mut self) -> &mut [RedisServer] {
        &mut self.servers
    }
}
