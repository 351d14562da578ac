//! `lockkit run` beside flock(1).

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::files::Files;
use crate::report::Report;

const WORKLOAD: &str = "run x -- true";
const WALL: (&str, &str) = ("start to exit", "ms");

pub(super) fn measure(report: &mut Report) -> Result<()> {
    let files = Files::new(report)?;
    let mut lockkit = Command::new(lockkit()?);
    lockkit.args(["--url", &files.url(), "run", "x", "--", "true"]);
    let mut flock = Command::new("flock");
    flock.arg(files.path("flock")).arg("true");
    let mut alone = Command::new("true");
    let mut commands = [&mut lockkit, &mut flock, &mut alone];

    let mut times = [const { Vec::new() }; 3];
    for i in 0..report.pick(61, 11) {
        for (times, command) in times.iter_mut().zip(&mut commands) {
            let millis = run(command)?;
            // The first makes the files.
            if i > 0 {
                times.push(millis);
            }
        }
    }
    let ours = report.row(WORKLOAD, "lockkit run", WALL, &times[0]);
    let theirs = report.row(WORKLOAD, "flock(1)", WALL, &times[1]);
    report.row(WORKLOAD, "true alone", WALL, &times[2]);
    report.bar(
        WORKLOAD,
        ("lockkit run less flock(1)", "ms"),
        ours - theirs,
        10.0,
    );
    Ok(())
}

fn run(command: &mut Command) -> Result<f64> {
    let started = Instant::now();
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot start {:?}", command.get_program()))?;
    ensure!(
        status.success(),
        "{:?} failed with {status}",
        command.get_program()
    );
    Ok(started.elapsed().as_secs_f64() * 1e3)
}

/// The command, which is built beside this program.
fn lockkit() -> Result<PathBuf> {
    let path = env::current_exe()?.with_file_name(format!("lockkit{}", env::consts::EXE_SUFFIX));
    ensure!(
        path.exists(),
        "build it first: cargo build --release --package lockkit-cli"
    );
    Ok(path)
}
