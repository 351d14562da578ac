//! A private Redis server on loopback.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use redis::{Client, Connection};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A server without persistence, in a directory of its own. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    address: String,
    _directory: TempDir,
}

impl Server {
    /// Starts it on a free port and waits until it answers.
    pub(super) fn start() -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let port = free_port()?;
        let child = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--port", &port.to_string()])
            .args(["--save", "", "--appendonly", "no", "--dir"])
            .arg(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| match error.kind() {
                ErrorKind::NotFound => anyhow::anyhow!(
                    "there is no redis-server; install it with\n  cargo xtask servers install redis"
                ),
                _ => error.into(),
            })?;
        let server = Self {
            child,
            address: format!("127.0.0.1:{port}"),
            _directory: directory,
        };
        let started = Instant::now();
        while let Err(error) = server.ping() {
            if started.elapsed() > PATIENCE {
                bail!("redis-server does not answer: {error}");
            }
            sleep(Duration::from_millis(10));
        }
        Ok(server)
    }

    /// Host and port.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// A connection for looking at it.
    pub(super) fn connect(&self) -> Result<Connection> {
        let client = Client::open(format!("redis://{}/", self.address))?;
        Ok(client.get_connection_with_timeout(PATIENCE)?)
    }

    /// Forgets all keys.
    pub(super) fn clear(&self) -> Result<()> {
        Ok(redis::cmd("FLUSHALL").exec(&mut self.connect()?)?)
    }

    /// Stops the process, which keeps its connections and answers nothing.
    pub(super) fn stall(&self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    /// Lets a stalled process go on.
    pub(super) fn resume(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    /// Ends the process; its port refuses connections from now on.
    pub(super) fn end(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        Ok(kill_process(
            pid.context("the server has a process id")?,
            signal,
        )?)
    }

    fn ping(&self) -> Result<()> {
        Ok(redis::cmd("PING").exec(&mut self.connect()?)?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It fails only for a process that has ended.
        let _ = self.end();
    }
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}
