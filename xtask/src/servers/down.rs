//! `cargo xtask servers down`.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};

use super::state::{self, State};

/// How long the servers may take to follow their keeper.
const PATIENCE: Duration = Duration::from_secs(10);

/// Ends the servers that are up.
pub(super) fn redis() -> Result<()> {
    let path = state::redis()?;
    let Some(state) = State::load(&path)? else {
        eprintln!("No Redis servers are up.");
        return Ok(());
    };
    end(&state, &path)?;
    eprintln!("The Redis servers are down.");
    Ok(())
}

/// Ends the keeper, with whom its servers end, and then what is left of them.
pub(super) fn end(state: &State, path: &Path) -> Result<()> {
    if state.is_kept() {
        signal(state.keeper, Signal::TERM)?;
    }
    let started = Instant::now();
    let alive = || state.servers.iter().filter(|server| server.is_there());
    while alive().next().is_some() && started.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(20));
    }
    for server in alive() {
        signal(server.pid, Signal::KILL)?;
    }
    Ok(fs::remove_file(path)?)
}

fn signal(pid: u32, signal: Signal) -> Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pid = pid.context("a process number in the state file")?;
    match kill_process(pid, signal) {
        // It has just ended by itself.
        Err(rustix::io::Errno::SRCH) => Ok(()),
        outcome => Ok(outcome?),
    }
}
