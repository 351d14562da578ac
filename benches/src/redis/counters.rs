//! What servers have spent, by their own account.

use std::ops::Sub;

use anyhow::{Context, Result};
use lockkit_servers::redis::RedisServer;
use redis::InfoDict;

use super::server::connect;
/// Counters that only grow, summed over the servers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    /// Commands, those inside scripts included.
    pub(super) commands: f64,
    pub(super) cpu_us: f64,
    /// Received and sent.
    pub(super) bytes: f64,
}

impl Counters {
    /// Asks the servers. One that cannot answer counts as if it had spent nothing.
    pub(super) fn read(servers: &[&RedisServer]) -> Result<Self> {
        let mut sum = Self::default();
        for server in servers {
            let info: InfoDict = redis::cmd("INFO").query(&mut connect(server)?)?;
            let field = |name| info.get::<f64>(name).context("INFO lacks a counter");
            sum.commands += field("total_commands_processed")?;
            sum.cpu_us += (field("used_cpu_user")? + field("used_cpu_sys")?) * 1e6;
            sum.bytes += field("total_net_input_bytes")? + field("total_net_output_bytes")?;
        }
        Ok(sum)
    }
}

impl Sub for Counters {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            commands: self.commands - earlier.commands,
            cpu_us: self.cpu_us - earlier.cpu_us,
            bytes: self.bytes - earlier.bytes,
        }
    }
}
