//! A master with a replica, and three sentinels that watch over them.

use anyhow::{Context, Result, bail};

use super::server::RedisServer;
use crate::patience::until;

/// What the sentinels call the master.
pub const SERVICE: &str = "lockkit";

/// A master, its replica, and three sentinels that replace a master that is silent for a second.
#[derive(Debug)]
pub struct Sentinels {
    servers: Vec<RedisServer>,
    sentinels: Vec<RedisServer>,
}

impl Sentinels {
    /// Starts them and waits until the sentinels know each other and the replica.
    ///
    /// # Errors
    ///
    /// If one does not start, or they do not find each other.
    pub fn start() -> Result<Self> {
        let master = RedisServer::start()?;
        let replica = RedisServer::builder().replica_of(master.port()).start()?;
        let sentinel = || {
            RedisServer::builder()
                .sentinel()
                .config(format!(
                    "sentinel monitor {SERVICE} 127.0.0.1 {} 2",
                    master.port()
                ))
                .config(format!("sentinel down-after-milliseconds {SERVICE} 1000"))
                .config(format!("sentinel failover-timeout {SERVICE} 3000"))
                .config(format!("sentinel parallel-syncs {SERVICE} 1"))
                .start()
        };
        let sentinels = vec![sentinel()?, sentinel()?, sentinel()?];
        let all = Self {
            servers: vec![master, replica],
            sentinels,
        };
        all.agreed()?;
        Ok(all)
    }

    /// `redis+sentinel://HOST:PORT,HOST:PORT,HOST:PORT/SERVICE`.
    #[must_use]
    pub fn url(&self) -> String {
        let addresses: Vec<_> = self.sentinels.iter().map(RedisServer::address).collect();
        format!("redis+sentinel://{}/{SERVICE}", addresses.join(","))
    }

    /// The two servers. The first was the master at the start.
    #[must_use]
    pub fn servers(&self) -> &[RedisServer] {
        &self.servers
    }

    /// The two servers, to be stopped and restarted.
    pub fn servers_mut(&mut self) -> &mut [RedisServer] {
        &mut self.servers
    }

    /// The three sentinels.
    #[must_use]
    pub fn sentinels(&self) -> &[RedisServer] {
        &self.sentinels
    }

    /// The three sentinels, to be stopped and restarted.
    pub fn sentinels_mut(&mut self) -> &mut [RedisServer] {
        &mut self.sentinels
    }

    /// Which of the [`servers`](Self::servers) is the master, in the eyes of all sentinels that
    /// answer.
    ///
    /// # Errors
    ///
    /// If no sentinel answers, or they do not agree.
    pub fn master(&self) -> Result<usize> {
        let ask = |sentinel: &RedisServer| {
            let answer = sentinel.ask(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE])?;
            Some(answer.lines().nth(1)?.to_owned())
        };
        let mut answers: Vec<_> = self.sentinels.iter().filter_map(ask).collect();
        answers.dedup();
        let [port] = answers.as_slice() else {
            bail!("the sentinels name {answers:?} as the master");
        };
        let is_it = |server: &RedisServer| server.port().to_string() == *port;
        let found = self.servers.iter().position(is_it);
        found.with_context(|| format!("the master is at port {port}, which is not ours"))
    }

    /// Makes the replica the master, while both run. Waits until all sentinels name it, and the
    /// old master is its replica.
    ///
    /// # Errors
    ///
    /// If that does not come to pass.
    pub fn fail_over(&self) -> Result<()> {
        let old = self.master()?;
        until("a replica that can be promoted", || {
            self.sentinels[0].cli(&["SENTINEL", "FAILOVER", SERVICE])?;
            Ok(Some(()))
        })?;
        self.await_failover_from(old)?;
        until("the old master as a replica", || {
            Ok(self.servers[old].is_linked_replica()?.then_some(()))
        })
    }

    /// Waits until the sentinels have replaced the server `old` as master, after it was paused or
    /// killed.
    ///
    /// # Errors
    ///
    /// If they do not.
    pub fn await_failover_from(&self, old: usize) -> Result<()> {
        until("a new master", || {
            let new = self.master()?;
            let is_master = || self.servers[new].cli(&["ROLE"]);
            Ok((new != old && is_master()?.starts_with("master")).then_some(()))
        })
    }

    fn agreed(&self) -> Result<()> {
        until("sentinels that know each other and the replica", || {
            let mut agreed = true;
            for sentinel in &self.sentinels {
                sentinel.cli(&["SENTINEL", "CKQUORUM", SERVICE])?;
                let info = sentinel.cli(&["INFO", "sentinel"])?;
                agreed &= info.contains("slaves=1,sentinels=3");
            }
            Ok(agreed.then_some(()))
        })
    }
}
