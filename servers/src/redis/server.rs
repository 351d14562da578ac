//! One server.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rustix::process::Signal;
use tempfile::TempDir;

use super::builder::{PROGRAM, RedisBuilder};
use super::cli::Cli;
use crate::patience::until;
use crate::process::{Process, tail};

/// How long a server that may be paused is given to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// What cannot stand for itself in the login of a URL.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A Redis server (or sentinel) of one's own on loopback. Dropping it ends it at once and removes
/// its directory.
#[derive(Debug)]
pub struct RedisServer {
    // Ends before its directory goes.
    process: Process,
    cli: Cli,
    sentinel: bool,
    environment: Vec<(&'static str, PathBuf)>,
    mutual: bool,
    unix_socket: bool,
    directory: TempDir,
}

impl RedisServer {
    /// Starts one that keeps nothing on disk, asks for no password, and waits until it answers.
    ///
    /// # Errors
    ///
    /// Like [`RedisBuilder::start`].
    pub fn start() -> Result<Self> {
        Self::builder().start()
    }

    /// One that is different.
    pub fn builder() -> RedisBuilder {
        RedisBuilder::default()
    }

    pub(super) fn launch(directory: TempDir, cli: Cli, builder: &RedisBuilder) -> Result<Self> {
        Ok(Self {
            process: spawn(directory.path(), builder.sentinel, &builder.environment)?,
            cli,
            sentinel: builder.sentinel,
            environment: builder.environment.clone(),
            mutual: builder.tls.as_ref().is_some_and(|tls| tls.mutual),
            unix_socket: builder.unix_socket,
            directory,
        })
    }

    /// Where it listens, on 127.0.0.1. The same after a restart.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.cli.port
    }

    /// `127.0.0.1:PORT`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port())
    }

    /// `redis://127.0.0.1:PORT`; with a password `redis://default:PASSWORD@127.0.0.1:PORT`; for TLS
    /// `rediss://127.0.0.1:PORT?ca=PATH`, with `cert` and `key` if clients need them.
    #[must_use]
    pub fn url(&self) -> String {
        match &self.cli.password {
            Some(password) => self.url_of("default", password),
            None => self.url_with(""),
        }
    }

    /// The same with another user's name and password.
    #[must_use]
    pub fn url_of(&self, user: &str, password: &str) -> String {
        let user = utf8_percent_encode(user, RESERVED);
        let password = utf8_percent_encode(password, RESERVED);
        self.url_with(&format!("{user}:{password}@"))
    }

    fn url_with(&self, login: &str) -> String {
        let address = self.address();
        let Some(files) = &self.cli.tls else {
            return format!("redis://{login}{address}");
        };
        let files = files.display();
        let mut url = format!("rediss://{login}{address}?ca={files}/ca.pem");
        if self.mutual {
            url += &format!("&cert={files}/client.pem&key={files}/client.key");
        }
        url
    }

    /// Its Unix socket, if it was built with [`RedisBuilder::unix_socket`].
    #[must_use]
    pub fn socket(&self) -> Option<PathBuf> {
        self.unix_socket
            .then(|| self.directory.path().join("redis.sock"))
    }

    /// The certificate of the authority that signed its own, if it speaks TLS.
    #[must_use]
    pub fn ca(&self) -> Option<PathBuf> {
        self.cli.tls.as_ref().map(|files| files.join("ca.pem"))
    }

    /// Its directory, with `redis.conf` and `log`.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The number of its process, which changes with a restart.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Sends one command through `redis-cli` and returns the reply as text, a line for each
    /// element of a list.
    ///
    /// # Errors
    ///
    /// If the reply is an error, or there is none within 30 s, as from a paused server.
    pub fn cli(&self, command: &[&str]) -> Result<String> {
        self.cli.send(command)
    }

    /// The same within [`PATIENCE`]: no reply is an answer too.
    pub(super) fn ask(&self, command: &[&str]) -> Option<String> {
        self.cli.send_within(PATIENCE, command).ok()
    }

    /// Stops it where it stands (SIGSTOP): connections stay open, and nobody gets an answer.
    ///
    /// # Errors
    ///
    /// If it has ended.
    pub fn pause(&self) -> Result<()> {
        self.process.signal(Signal::STOP)
    }

    /// Lets it go on (SIGCONT).
    ///
    /// # Errors
    ///
    /// If it has ended.
    pub fn resume(&self) -> Result<()> {
        self.process.signal(Signal::CONT)
    }

    /// Ends it without a chance to do anything (SIGKILL).
    ///
    /// # Errors
    ///
    /// If the system refuses.
    pub fn kill(&mut self) -> Result<()> {
        self.process.kill()
    }

    /// Asks it to end (SIGTERM) and waits until it has.
    ///
    /// # Errors
    ///
    /// If it does not.
    pub fn stop(&mut self) -> Result<()> {
        self.process.stop()
    }

    /// Starts it again on the same port, in the same directory, with the same configuration, and
    /// waits until it answers. Stops it first if it runs.
    ///
    /// # Errors
    ///
    /// If it does not start.
    pub fn restart(&mut self) -> Result<()> {
        self.stop()?;
        self.process = spawn(self.directory.path(), self.sentinel, &self.environment)?;
        self.ready(false)
    }

    /// Waits until it answers, and is in touch with its master if `linked`.
    pub(super) fn ready(&mut self, linked: bool) -> Result<()> {
        let pid = format!("process_id:{}", self.pid());
        let (cli, process) = (&self.cli, &mut self.process);
        let answered = until(&format!("a Redis server at port {}", cli.port), || {
            if let Some(status) = process.ended()? {
                return Ok(Some(Err(status)));
            }
            // Somebody else may listen there.
            let is_it = cli
                .send(&["INFO", "server"])?
                .lines()
                .any(|line| line == pid);
            let is_up = cli.send(&["PING"])? == "PONG";
            let is_linked = !linked || Self::is_linked(cli)?;
            Ok((is_it && is_up && is_linked).then_some(Ok(())))
        });
        match answered.with_context(|| self.log())? {
            Ok(()) => Ok(()),
            Err(status) => bail!(
                "the Redis server at port {} ended with {status}:\n{}",
                self.port(),
                self.log()
            ),
        }
    }

    fn is_linked(cli: &Cli) -> Result<bool> {
        let replication = cli.send(&["INFO", "replication"])?;
        Ok(replication.contains("master_link_status:up"))
    }

    /// Runs one of the `--cluster` tasks of `redis-cli` in a way that can log in here.
    pub(super) fn cluster_task(&self, arguments: &[&str]) -> Result<String> {
        self.cli.cluster(arguments)
    }

    /// Whether this is a replica in touch with its master.
    ///
    /// # Errors
    ///
    /// If it does not answer.
    pub fn is_linked_replica(&self) -> Result<bool> {
        Self::is_linked(&self.cli)
    }

    /// The last lines of its log, for a message.
    #[must_use]
    pub fn log(&self) -> String {
        tail(&self.directory.path().join("log"))
    }

    pub(super) fn found_its_port_taken(&self) -> bool {
        self.log().contains("Address already in use")
    }
}

fn spawn(
    directory: &Path,
    sentinel: bool,
    environment: &[(&'static str, PathBuf)],
) -> Result<Process> {
    let conf = directory.join("redis.conf");
    let conf = conf.to_str().context("a temporary directory in UTF-8")?;
    let mut command = vec![PROGRAM, conf];
    if sentinel {
        command.push("--sentinel");
    }
    Process::start(&command, environment, directory, &directory.join("log"))
}
