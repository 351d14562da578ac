//! `cargo xtask servers up`.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, thread};

use anyhow::{Result, bail};
use lockkit_servers::redis::RedisSet;

use super::state::{self, State};
use super::{down, install};
use crate::steps::Steps;

/// Starts the servers and keeps them until this process is ended.
pub(super) fn in_the_foreground() -> Result<()> {
    let path = state::redis()?;
    if announce_running(&path)? {
        return Ok(());
    }
    let mut steps = Steps::default();
    install::redis(&mut steps)?;
    let set = steps.step("start the Redis servers", RedisSet::start)?;
    let state = State::of(&set);
    state.save(&path)?;
    print!("{}", state.exports());
    eprintln!("\nCtrl-C or `cargo xtask servers down redis` ends them.");
    loop {
        // They end with this process, however that ends.
        thread::park();
    }
}

/// Lets another process do that, and returns once they run.
pub(super) fn detached() -> Result<()> {
    let path = state::redis()?;
    if announce_running(&path)? {
        return Ok(());
    }
    // Here, where its questions and messages are seen.
    install::redis(&mut Steps::default())?;
    let log = path.with_extension("log");
    let mut keeper = Command::new(env::current_exe()?)
        .args(["servers", "up", "redis"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(&log)?)
        // Out of reach of a Ctrl-C in this terminal.
        .process_group(0)
        .spawn()?;
    loop {
        if let Some(state) = State::load(&path)?.filter(|state| state.keeper == keeper.id()) {
            print!("{}", state.exports());
            eprintln!("`cargo xtask servers down redis` ends them.");
            return Ok(());
        }
        if let Some(status) = keeper.try_wait()? {
            bail!(
                "they did not start ({status}):\n{}",
                fs::read_to_string(&log)?
            );
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Tells where the servers are, if they are up. Forgets those that are not any more.
fn announce_running(path: &Path) -> Result<bool> {
    let Some(state) = State::load(path)? else {
        return Ok(false);
    };
    if state.is_kept() {
        print!("{}", state.exports());
        eprintln!("They are up already; `cargo xtask servers down redis` ends them.");
        return Ok(true);
    }
    down::end(&state, path)?;
    Ok(false)
}
