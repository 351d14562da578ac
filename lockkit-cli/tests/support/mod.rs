//! A place of its own for each test: a directory, the locks in it, and the command.
#![allow(dead_code, reason = "each test file uses its part of it")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// Longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Place {
    directory: TempDir,
    url: String,
}

impl Place {
    /// With its locks in a file of its own.
    pub(crate) fn new() -> Self {
        let mut place = Self::at(String::new());
        place.url = format!("sqlite:{}", place.path("locks.db").display());
        place
    }

    /// With its locks somewhere else.
    pub(crate) fn at(url: String) -> Self {
        let directory = TempDir::new().unwrap();
        Self { directory, url }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }

    pub(crate) fn lockkit<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        // Whoever runs the tests may ignore signals, and what is ignored is inherited.
        let mut command = Command::new("env");
        command
            .arg("--default-signal")
            .arg(assert_cmd::cargo::cargo_bin!("lockkit"))
            .args(args)
            .env("LOCKKIT_URL", self.url())
            .current_dir(self.directory.path());
        for name in [
            "LOCKKIT_KEY",
            "LOCKKIT_FENCING_TOKEN",
            "LOCKKIT_BACKEND",
            "LOCKKIT_HOLDER",
            "LOCKKIT_MODE",
            "LOCKKIT_SEGMENT",
        ] {
            command.env_remove(name);
        }
        command
    }

    /// Runs to the end with nothing on stdin.
    pub(crate) fn output<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Output {
        self.lockkit(args).stdin(Stdio::null()).output().unwrap()
    }

    pub(crate) fn status<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> i32 {
        self.output(args).status.code().unwrap()
    }

    /// Starts `lockkit` and waits for the first line of its CMD.
    pub(crate) fn start<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Running {
        let mut running = Running::spawn(self.lockkit(args));
        running.first_line = running.line();
        running
    }

    /// Holds a lock until the result is dropped or told to end.
    pub(crate) fn hold(&self, name: &str) -> Running {
        self.hold_as(&[], name)
    }

    /// The same with options; the first line is how it is held, and which segment.
    pub(crate) fn hold_as(&self, options: &[&str], name: &str) -> Running {
        let script = "echo $LOCKKIT_MODE, $LOCKKIT_SEGMENT; read _ || :";
        let cmd = [name, "--", "sh", "-c", script];
        self.start(["run"].iter().chain(options).chain(&cmd))
    }

    /// Runs to the end; asserts the status and returns the one line on stderr.
    pub(crate) fn refused(&self, args: &[&str], status: i32) -> String {
        let output = self.output(args);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{args:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{args:?}: {said}");
        said.strip_prefix("lockkit: ")
            .unwrap()
            .trim_end()
            .to_owned()
    }

    /// Runs to its good end; returns what it printed.
    pub(crate) fn said(&self, args: &[&str]) -> String {
        let output = self.output(args);
        assert!(
            output.status.success(),
            "{args:?}: {}",
            text(&output.stderr)
        );
        text(&output.stdout)
    }

    /// `lockkit ls --format json`.
    pub(crate) fn ls(&self) -> Vec<Value> {
        let output = self.output(["ls", "--format", "json"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub(crate) fn until_waiters(&self, wanted: usize) {
        until("the line is as long as wanted", || {
            self.ls()
                .iter()
                .map(|lock| lock["waiters"].as_array().unwrap().len())
                .sum::<usize>()
                == wanted
        });
    }
}

/// A `lockkit` on its way; killed when dropped.
pub(crate) struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    pub(crate) first_line: String,
}

impl Running {
    pub(crate) fn spawn(mut command: Command) -> Self {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            stdin,
            stdout,
            first_line: String::new(),
        }
    }

    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Waits for the end; the second half is what it said on stderr.
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        let started = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(started.elapsed() < PATIENCE, "still running");
            std::thread::sleep(Duration::from_millis(10));
        };
        let mut said = String::new();
        // Reads what is there: a surviving grandchild would keep the pipe open for ever.
        if let Some(stderr) = self.child.stderr.take() {
            rustix::io::ioctl_fionbio(&stderr, true).unwrap();
            let mut bytes = Vec::new();
            let _ = BufReader::new(stderr).read_to_end(&mut bytes);
            said = text(&bytes);
        }
        (status, said)
    }

    /// Ends a CMD that reads its stdin.
    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Ends a CMD that reads its stdin, and waits for that.
    pub(crate) fn finish(mut self) -> ExitStatus {
        self.close_stdin();
        self.end().0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(crate) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether a process runs; a zombie that nobody has waited for does not.
pub(crate) fn runs(pid: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
    stat.is_ok_and(|stat| !stat.rsplit(')').next().unwrap().starts_with(" Z"))
}

pub(crate) fn kill(pid: &str) {
    let pid = Pid::from_raw(pid.parse().unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
}
