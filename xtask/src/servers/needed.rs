//! The servers that one task needs.

use std::process::Command;

use anyhow::Result;
use lockkit_servers::redis::RedisSet;

use super::install;
use crate::steps::Steps;

/// The servers that were started for one task; dropping this ends them.
#[derive(Debug)]
pub(crate) struct Servers {
    redis: RedisSet,
}

impl Servers {
    /// Installs and starts what is missing, and waits until everything answers.
    pub(crate) fn start(steps: &mut Steps) -> Result<Self> {
        install::redis(steps)?;
        let redis = steps.step("start the Redis servers", RedisSet::start)?;
        Ok(Self { redis })
    }

    /// Tells a command where the servers are.
    pub(crate) fn announce(&self, command: &mut Command) {
        command.envs(self.redis.variables());
    }
}
