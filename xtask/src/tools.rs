//! Installs the tools that the checks need and the machine lacks.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::steps::{Steps, cargo};
use crate::workspace::output;

/// The version of cargo-deny that `deny.toml` is written for.
const CARGO_DENY: &str = "0.20";

/// Makes sure of a component of the toolchain, such as `clippy`, by its cargo sub-command.
pub(crate) fn component(steps: &mut Steps, name: &str, subcommand: &str) -> Result<()> {
    if output(&mut cargo(&format!("{subcommand} --version"))).is_ok() {
        return Ok(());
    }
    steps.run(Command::new("rustup").args(["component", "add", name]))
}

/// The path of cargo-deny: on PATH, or kept under the target directory, or installed there now.
pub(crate) fn cargo_deny(steps: &mut Steps, target: &Path) -> Result<PathBuf> {
    let root = target.join("tools");
    let kept = root
        .join("bin")
        .join(format!("cargo-deny{}", env::consts::EXE_SUFFIX));
    for candidate in [PathBuf::from("cargo-deny"), kept.clone()] {
        let version = output(Command::new(&candidate).arg("--version")).unwrap_or_default();
        if version.starts_with(&format!("cargo-deny {CARGO_DENY}.")) {
            return Ok(candidate);
        }
    }
    let mut install = cargo("install --locked cargo-deny --version");
    install
        .arg(format!("~{CARGO_DENY}"))
        .arg("--root")
        .arg(root);
    // It runs for a second at a time: a quick build is worth more than a quick program.
    install.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0");
    install.env("CARGO_PROFILE_RELEASE_LTO", "off");
    install.env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    steps
        .run(&mut install)
        .context("install cargo-deny by hand if this machine has no network")?;
    Ok(kept)
}
