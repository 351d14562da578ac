//! `cargo xtask servers install`.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::steps::Steps;
use crate::workspace::output;

/// The oldest that the tests can do with: `redis-cli -e` and sharded channels came with it.
const OLDEST: u32 = 7;

const BY_HAND: &str = "install Redis 7 or newer, so that `redis-server` and `redis-cli` are on PATH: \
    `brew install redis`, `dnf install redis`, or as on https://redis.io/docs/latest/operate/oss_and_stack/install/";

/// Makes sure of `redis-server` and `redis-cli`, which are all that a sentinel needs too.
pub(super) fn redis(steps: &mut Steps) -> Result<()> {
    let programs = ["redis-server", "redis-cli"];
    if programs.iter().any(|program| found(program).is_none()) {
        apt(steps, "redis-server")?;
        for program in programs {
            ensure!(
                found(program).is_some(),
                "`{program}` is still missing; {BY_HAND}"
            );
        }
    }
    let version = redis_version()?;
    let major = version.split('.').next().and_then(|part| part.parse().ok());
    if major.is_none_or(|major: u32| major < OLDEST) {
        bail!("redis-server {version} on PATH is too old; {BY_HAND}");
    }
    eprintln!("redis-server {version} is installed");
    Ok(())
}

/// The version of `redis-server`, such as `7.0.15`.
pub(super) fn redis_version() -> Result<String> {
    // "Redis server v=7.0.15 sha=…"; Valkey says "Valkey server v=…".
    let told = output(Command::new("redis-server").arg("--version"))?;
    let mut words = told.split_whitespace();
    let version = words.find_map(|word| word.strip_prefix("v="));
    let version = version.with_context(|| format!("a version in `{}`", told.trim()))?;
    Ok(version.to_owned())
}

/// Where on PATH a program is.
pub(super) fn found(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|candidate| candidate.is_file())
}

fn apt(steps: &mut Steps, package: &str) -> Result<()> {
    let install = ["install", "-y", "--no-install-recommends", package];
    ensure!(
        found("apt-get").is_some(),
        "there is no apt-get here; {BY_HAND}"
    );
    ensure!(
        is_root(),
        "only root may install packages; run\n  sudo apt-get {}",
        install.join(" ")
    );
    let apt = || {
        let mut apt = Command::new("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive");
        apt
    };
    // The lists of a fresh container are empty. If one source of many fails, ours may still work.
    if let Err(error) = steps.run(apt().arg("update")) {
        eprintln!("going on in spite of: {error:#}");
    }
    steps.run(apt().args(install)).context(BY_HAND)
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
