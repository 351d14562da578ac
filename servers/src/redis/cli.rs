//! `redis-cli`, with what it takes to reach one server.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

/// How long one call may take; a paused server would never answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// How to reach one server.
#[derive(Clone, Debug, Default)]
pub(super) struct Cli {
    pub(super) port: u16,
    pub(super) password: Option<String>,
    /// The directory with `client.pem` and `client.key`.
    pub(super) tls: Option<PathBuf>,
}

impl Cli {
    /// Sends one command and returns the reply as text: a line for each element of a list.
    pub(super) fn send(&self, command: &[&str]) -> Result<String> {
        self.send_within(PATIENCE, command)
    }

    /// The same for who does not want to wait for a server that may be paused.
    pub(super) fn send_within(&self, patience: Duration, command: &[&str]) -> Result<String> {
        let port = self.port.to_string();
        // -e turns an error reply into a failure.
        let mut call = self.call();
        call.args(["-h", "127.0.0.1", "-p", &port, "-e"]);
        output(call.args(command), patience)
            .with_context(|| format!("`{}` at port {port}", command.join(" ")))
    }

    /// Runs one of the `--cluster` tasks of `redis-cli`.
    pub(super) fn cluster(&self, arguments: &[&str]) -> Result<String> {
        let mut call = self.call();
        output(call.arg("--cluster").args(arguments), PATIENCE).context(arguments.join(" "))
    }

    fn call(&self) -> Command {
        let mut call = Command::new("redis-cli");
        if let Some(password) = &self.password {
            // Not as an argument, which everybody on this machine could read.
            call.env("REDISCLI_AUTH", password);
        }
        if let Some(directory) = &self.tls {
            // Without a look at the server's certificate, which may be a bad one on purpose.
            call.args(["--tls", "--insecure", "--cert"])
                .arg(directory.join("client.pem"))
                .arg("--key")
                .arg(directory.join("client.key"));
        }
        call
    }
}

fn output(call: &mut Command, patience: Duration) -> Result<String> {
    let child = call
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start redis-cli; `cargo xtask servers install redis` installs it")?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let (done, answer) = mpsc::channel();
    thread::spawn(move || done.send(child.wait_with_output()));
    let Ok(ended) = answer.recv_timeout(patience) else {
        kill_process(pid.context("no pid")?, Signal::KILL)?;
        bail!("no reply within {} s", patience.as_secs());
    };
    let Output {
        status,
        stdout,
        stderr,
    } = ended?;
    let told = String::from_utf8_lossy(&stdout).trim_end().to_owned();
    if !status.success() {
        let more = String::from_utf8_lossy(&stderr);
        bail!("{}", [told.trim(), more.trim()].join("\n").trim());
    }
    Ok(told)
}
