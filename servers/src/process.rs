//! A server process on a leash.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{env, thread};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

/// How long a server may take to end after it was asked to.
const PATIENCE: Duration = Duration::from_secs(20);

/// Becomes the server (`$2 …`), after leaving a process behind that reads the leash. A line on
/// it says that all is well; its end without one, that the owner has died: then the server and
/// its directory (`$1`) have to go.
const LEASH: &str = r#"
exec 3<&0 </dev/null
dir=$1; shift
( read -r _ <&3 || { kill -KILL $$; rm -rf -- "$dir"; } ) >/dev/null 2>&1 &
exec "$@" 3<&-
"#;

/// A process that ends when this is dropped, or when its owner dies in whatever way.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    leash: Option<ChildStdin>,
}

impl Process {
    /// Starts `command` in `directory`, its output appended to `log`. The directory is removed
    /// if the owner dies first.
    pub(crate) fn start(
        command: &[&str],
        environment: &[(&str, PathBuf)],
        directory: &Path,
        log: &Path,
    ) -> Result<Self> {
        let output = File::options().create(true).append(true).open(log)?;
        let mut shell = Command::new("sh");
        shell
            .args(["-c", LEASH, "sh"])
            .arg(directory)
            .args(command)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .current_dir(directory)
            // Out of reach of a Ctrl-C, which is the owner's to act on.
            .process_group(0)
            .stdin(Stdio::piped())
            .stderr(output.try_clone()?)
            .stdout(output);
        let mut child = shell.spawn().context("cannot start `sh`")?;
        let leash = child.stdin.take();
        Ok(Self { child, leash })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        let ended = self.child.try_wait()?;
        if ended.is_some() {
            self.unleash();
        }
        Ok(ended)
    }

    /// Stops it where it stands (SIGSTOP), or lets it go on (SIGCONT).
    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw);
        kill_process(pid.context("no pid")?, signal)?;
        Ok(())
    }

    /// Asks it to end (SIGTERM) and waits until it has.
    pub(crate) fn stop(&mut self) -> Result<()> {
        if self.ended()?.is_some() {
            return Ok(());
        }
        self.signal(Signal::TERM)?;
        self.signal(Signal::CONT)?;
        let started = Instant::now();
        while self.ended()?.is_none() {
            if started.elapsed() > PATIENCE {
                bail!("it did not end within {} s", PATIENCE.as_secs());
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Ends it without a chance to do anything (SIGKILL).
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        self.unleash();
        Ok(())
    }

    fn unleash(&mut self) {
        if let Some(mut leash) = self.leash.take() {
            // Who reads it may be gone; nothing is left to be told then.
            let _ = leash.write_all(b"\n");
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// Whether the system would find this program.
pub(crate) fn is_installed(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// The last lines of a log, for an error message.
pub(crate) fn tail(log: &Path) -> String {
    const LINES: usize = 12;
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_there(pid: u32) -> bool {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_dies_with_its_owner_and_takes_its_directory_along() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let mut process = Process::start(&["sleep", "1000"], &[], directory.path(), &log).unwrap();
        // What the system does when an owner is killed.
        drop(process.leash.take());
        let started = Instant::now();
        while is_there(process.pid()) || directory.path().exists() {
            assert!(started.elapsed() < PATIENCE, "it still runs");
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_process_that_is_dropped_has_ended_and_its_directory_is_left_to_its_owner() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let process = Process::start(&["sleep", "1000"], &[], directory.path(), &log).unwrap();
        let pid = process.pid();
        drop(process);
        assert!(!is_there(pid));
        assert!(directory.path().exists());
    }

    #[test]
    fn a_stopped_process_can_be_told_to_end() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let mut process = Process::start(&["sleep", "1000"], &[], directory.path(), &log).unwrap();
        process.signal(Signal::STOP).unwrap();
        process.stop().unwrap();
        assert!(process.ended().unwrap().is_some());
    }

    #[test]
    fn the_tail_of_a_log_is_its_last_lines() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let lines: Vec<_> = (0..30).map(|line| line.to_string()).collect();
        fs::write(&log, lines.join("\n")).unwrap();
        assert!(tail(&log).starts_with("18\n"));
        assert!(tail(&log).ends_with("\n29"));
    }
}
