//! `cargo xtask servers status`.

use std::io::{self, Write};

use anyhow::Result;

use super::install;
use super::state::{self, Server, State};

/// Shows what is installed and what is up.
pub(super) fn show() -> Result<()> {
    let installed = install::redis_version().map_or_else(
        |_| "not installed; `cargo xtask servers install redis` installs it".to_owned(),
        |version| format!("redis-server {version} is installed"),
    );
    let mut shown = format!("redis: {installed}\n");
    match State::load(&state::redis()?)? {
        None => shown += "redis: no servers are up\n",
        Some(state) => shown += &table(&state),
    }
    Ok(io::stdout().write_all(shown.as_bytes())?)
}

fn table(state: &State) -> String {
    let keeper = state.keeper;
    if !state.is_kept() {
        return format!("redis: process {keeper} kept servers, and is gone with them\n");
    }
    let rows = state.servers.iter().map(|server| {
        let there = if server.is_there() { "up" } else { "gone" };
        let Server { role, port, pid } = server;
        format!("{role:20} {port:>6} {pid:>9} {there}\n")
    });
    [
        format!("redis: kept by process {keeper}\n"),
        format!("{:20} {:>6} {:>9}\n", "role", "port", "process"),
        rows.collect(),
        state.exports(),
    ]
    .concat()
}
