//! The drivers of other lock libraries, in `benches/peers`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::steps::{Steps, cargo};
use crate::workspace::Workspace;

/// Builds the drivers, those in Java and Go only if `all` are wanted, and gives the arguments that
/// tell the benchmarks where they are.
pub(crate) fn build(steps: &mut Steps, workspace: &Workspace, all: bool) -> Result<Vec<OsString>> {
    let sources = workspace.root()?.join("benches/peers");
    let target = workspace.target_dir()?.join("peers");
    let mut args = vec!["--rust".into(), rust(steps, &sources, &target)?.into()];
    if all {
        args.extend(["--java".into(), java(steps, &sources, &target)?]);
        args.extend(["--go".into(), go(steps, &sources, &target)?.into()]);
    }
    Ok(args)
}

fn rust(steps: &mut Steps, sources: &Path, target: &Path) -> Result<PathBuf> {
    let mut build = cargo("build --release --manifest-path");
    build.arg(sources.join("rust/Cargo.toml"));
    steps.run(build.arg("--target-dir").arg(target))?;
    Ok(target.join("release/lockkit-peers"))
}

/// Gives the class path.
fn java(steps: &mut Steps, sources: &Path, target: &Path) -> Result<OsString> {
    let target = target.join("java");
    let mut define = OsString::from("-Dmeasure.target=");
    define.push(&target);
    let mut build = Command::new("mvn");
    build.arg("-q").arg("-f").arg(sources.join("java/pom.xml"));
    steps.run(build.arg(define).arg("package"))?;
    let paths = [target.join("classes"), target.join("lib/*")];
    Ok(std::env::join_paths(paths)?)
}

fn go(steps: &mut Steps, sources: &Path, target: &Path) -> Result<PathBuf> {
    let built = target.join("lockpeers");
    let mut build = Command::new("go");
    build.arg("build").arg("-C").arg(sources.join("go"));
    steps.run(build.arg("-o").arg(&built).arg("."))?;
    Ok(built)
}
