//! What `servers up` writes down for `servers status` and `servers down`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use lockkit_servers::redis::RedisSet;
use serde::{Deserialize, Serialize};

use crate::workspace::Workspace;

/// The servers that are up.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct State {
    /// The process that has started them, and with which they end.
    pub(super) keeper: u32,
    pub(super) servers: Vec<Server>,
    pub(super) variables: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Server {
    pub(super) role: String,
    pub(super) port: u16,
    pub(super) pid: u32,
}

impl State {
    /// Of the servers that this process keeps.
    pub(super) fn of(set: &RedisSet) -> Self {
        let servers = set.running().into_iter().map(|running| Server {
            role: running.role.to_owned(),
            port: running.port,
            pid: running.pid,
        });
        let variables = set.variables().into_iter();
        Self {
            keeper: std::process::id(),
            servers: servers.collect(),
            variables: variables
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        }
    }

    /// What is written down, if anything is.
    pub(super) fn load(path: &Path) -> Result<Option<Self>> {
        if !path.exists() {
            return Ok(None);
        }
        let json = fs::read(path)?;
        let state = serde_json::from_slice(&json);
        let path = path.display();
        Ok(Some(
            state.with_context(|| format!("{path} is broken; delete it"))?,
        ))
    }

    pub(super) fn save(&self, path: &Path) -> Result<()> {
        // In one go, for somebody may be waiting to read it.
        let draft = path.with_extension("draft");
        fs::write(&draft, serde_json::to_vec_pretty(self)?)?;
        Ok(fs::rename(draft, path)?)
    }

    /// Lines for a shell that tell the tests where the servers are.
    pub(super) fn exports(&self) -> String {
        let line = |(name, value): (&String, &String)| format!("export {name}='{value}'\n");
        self.variables.iter().map(line).collect()
    }
}

/// The directory of these files, made if missing.
pub(super) fn directory() -> Result<PathBuf> {
    let directory = Workspace::load()?.target_dir()?.join("servers");
    fs::create_dir_all(&directory)?;
    Ok(directory)
}

/// Where the state of the Redis servers is.
pub(super) fn redis() -> Result<PathBuf> {
    Ok(directory()?.join("redis.json"))
}
