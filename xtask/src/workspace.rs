//! What cargo says about this workspace.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::steps::cargo;

/// The output of `cargo metadata`.
#[derive(Debug)]
pub(crate) struct Workspace(Value);

impl Workspace {
    /// Asks cargo.
    pub(crate) fn load() -> Result<Self> {
        let json = output(&mut cargo("metadata --no-deps --format-version 1"))?;
        Ok(Self(serde_json::from_str(&json)?))
    }

    /// Where cargo builds.
    pub(crate) fn target_dir(&self) -> Result<PathBuf> {
        let dir = self.0["target_directory"]
            .as_str()
            .context("no target directory")?;
        Ok(dir.into())
    }

    /// Where this repository is.
    pub(crate) fn root(&self) -> Result<PathBuf> {
        let dir = self.0["workspace_root"].as_str().context("no root")?;
        Ok(dir.into())
    }

    /// The features of one package, without `default`.
    pub(crate) fn features(&self, package: &str) -> Result<Vec<String>> {
        let packages = self.0["packages"].as_array().context("no packages")?;
        let found = packages.iter().find(|found| found["name"] == package);
        let features = found.and_then(|found| found["features"].as_object());
        let names = features
            .with_context(|| format!("no package {package}"))?
            .keys();
        Ok(names.filter(|name| *name != "default").cloned().collect())
    }
}

/// What a command writes to its standard output.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("cannot start {command:?}"))?;
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{command:?} failed with {}: {told}",
        output.status
    );
    Ok(String::from_utf8(output.stdout)?)
}
