//! The drivers of other lock libraries, in `benches/peers`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::steps::{Steps, cargo};

/// Builds the drivers below `target`, those in Java and Go only if `all` are wanted, and gives the
/// arguments that tell the benchmarks where they are.
pub(crate) fn build(steps: &mut Steps, target: &Path, all: bool) -> Result<Vec<OsString>> {
    let target = target.join("peers");
    let mut args = vec!["--rust".into(), rust(steps, &target)?.into()];
    if all {
        args.extend(["--java".into(), java(steps, &target)?]);
        args.extend(["--go".into(), go(steps, &target)?.into()]);
    }
    Ok(args)
}

fn rust(steps: &mut Steps, target: &Path) -> Result<PathBuf> {
    let mut build = cargo("build --release --manifest-path benches/peers/rust/Cargo.toml");
    steps.run(build.arg("--target-dir").arg(target))?;
    Ok(target.join("release/lockkit-peers"))
}

/// Gives the class path.
fn java(steps: &mut Steps, target: &Path) -> Result<OsString> {
    let target = target.join("java");
    let mut define = OsString::from("-Dmeasure.target=");
    define.push(&target);
    let mut build = Command::new("mvn");
    build.args(["-q", "-f", "benches/peers/java/pom.xml"]);
    steps.run(build.arg(define).arg("package"))?;
    let paths = [target.join("classes"), target.join("lib/*")];
    Ok(std::env::join_paths(paths)?)
}

fn go(steps: &mut Steps, target: &Path) -> Result<PathBuf> {
    let built = target.join("lockpeers");
    let mut build = Command::new("go");
    build.args(["build", "-C", "benches/peers/go", "-o"]);
    steps.run(build.arg(&built).arg("."))?;
    Ok(built)
}
