//! What a server is to be like.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::cli::Cli;
use super::server::RedisServer;
use crate::{Authority, Certificate, Clock, port, process, scratch};

/// The program that is server and sentinel.
pub(super) const PROGRAM: &str = "redis-server";

/// How often another port is tried if somebody was quicker to listen there.
const ATTEMPTS: usize = 10;

/// When what was written reaches the append-only file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AppendOnly {
    /// Never: a server that ends forgets everything.
    #[default]
    Off,
    /// Within about a second; a crash of the machine costs that much.
    EverySecond,
    /// Before the reply.
    Always,
}

/// A [`RedisServer`] to be started. Made by [`RedisServer::builder`].
#[derive(Debug, Default)]
#[must_use = "nothing is started before `start`"]
pub struct RedisBuilder {
    pub(super) lines: Vec<String>,
    pub(super) append_only: AppendOnly,
    pub(super) password: Option<String>,
    pub(super) tls: Option<Tls>,
    pub(super) unix_socket: bool,
    pub(super) replica_of: Option<u16>,
    pub(super) sentinel: bool,
    pub(super) environment: Vec<(&'static str, PathBuf)>,
}

#[derive(Debug)]
pub(super) struct Tls {
    /// From, and to which name in the server's own directory.
    files: Vec<(PathBuf, &'static str)>,
    pub(super) mutual: bool,
}

impl RedisBuilder {
    /// Adds a line of `redis.conf`, such as `maxmemory 2mb`.
    pub fn config(mut self, line: impl Into<String>) -> Self {
        self.lines.push(line.into());
        self
    }

    /// Keeps an append-only file, so that what was written is there after a restart.
    pub fn append_only(mut self, when: AppendOnly) -> Self {
        self.append_only = when;
        self
    }

    /// Asks everybody for this password, as user `default`; no blanks in it. Replicas of a server
    /// with a password must have the same one.
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self
    }

    /// Adds a user with these rights, as in `ACL SETUSER`. The user `default` may still do
    /// everything, so give the server a [`password`](Self::password) too.
    pub fn user(self, name: &str, password: &str, rules: &str) -> Self {
        self.config(format!("user {name} on >{password} {rules}"))
    }

    /// Speaks TLS only, with this certificate of the authority. Clients need none.
    ///
    /// # Errors
    ///
    /// If the authority cannot write a certificate for `redis-cli`.
    pub fn tls(mut self, authority: &Authority, server: &Certificate) -> Result<Self> {
        let client = authority.client("redis-cli")?;
        self.tls = Some(Tls {
            files: vec![
                (authority.ca(), "ca.pem"),
                (server.certificate.clone(), "server.pem"),
                (server.key.clone(), "server.key"),
                (client.certificate, "client.pem"),
                (client.key, "client.key"),
            ],
            mutual: false,
        });
        Ok(self)
    }

    /// Like [`tls`](Self::tls), and refuses clients without a certificate of the same authority.
    ///
    /// # Errors
    ///
    /// If the authority cannot write a certificate for `redis-cli`.
    pub fn mutual_tls(self, authority: &Authority, server: &Certificate) -> Result<Self> {
        let mut builder = self.tls(authority, server)?;
        builder.tls.iter_mut().for_each(|tls| tls.mutual = true);
        Ok(builder)
    }

    /// Listens on a Unix socket too: [`RedisServer::socket`].
    pub fn unix_socket(mut self) -> Self {
        self.unix_socket = true;
        self
    }

    /// Is a replica of the server at this port. [`start`](Self::start) then waits until the two
    /// are in touch.
    pub fn replica_of(mut self, port: u16) -> Self {
        self.replica_of = Some(port);
        self
    }

    /// Lives by this clock.
    pub fn clock(mut self, clock: &Clock) -> Self {
        self.environment.extend(clock.environment());
        self
    }

    pub(super) fn sentinel(mut self) -> Self {
        self.sentinel = true;
        self
    }

    /// Starts it and waits until it answers.
    ///
    /// # Errors
    ///
    /// If the program is not installed, or does not start: the message has the end of its log.
    pub fn start(self) -> Result<RedisServer> {
        ensure!(
            process::is_installed(PROGRAM),
            "`{PROGRAM}` is not on PATH; `cargo xtask servers install redis` installs it"
        );
        let mut attempts = 0;
        loop {
            let mut server = self.launch(port::free()?)?;
            let Err(error) = server.ready(self.replica_of.is_some()) else {
                return Ok(server);
            };
            attempts += 1;
            if attempts == ATTEMPTS || !server.found_its_port_taken() {
                return Err(error);
            }
        }
    }

    fn launch(&self, port: u16) -> Result<RedisServer> {
        let directory = scratch("lockkit-redis-")?;
        let path = directory.path();
        fs::write(path.join("redis.conf"), self.conf(port, path))?;
        let files = self.tls.iter().flat_map(|tls| &tls.files);
        for (from, name) in files {
            // Copies, for the server may outlive the authority.
            fs::copy(from, path.join(name)).with_context(|| from.display().to_string())?;
        }
        let cli = Cli {
            port,
            password: self.password.clone(),
            tls: self.tls.is_some().then(|| path.to_owned()),
        };
        RedisServer::launch(directory, cli, self)
    }

    fn conf(&self, port: u16, directory: &Path) -> String {
        let directory = directory.display();
        let (plain, tls) = if self.tls.is_some() {
            (0, Some(port))
        } else {
            (port, None)
        };
        let mut conf = vec![
            "bind 127.0.0.1".to_owned(),
            format!("port {plain}"),
            format!("dir \"{directory}\""),
        ];
        if !self.sentinel {
            let (append, fsync) = match self.append_only {
                AppendOnly::Off => ("no", "no"),
                AppendOnly::EverySecond => ("yes", "everysec"),
                AppendOnly::Always => ("yes", "always"),
            };
            conf.push("save \"\"".to_owned());
            conf.push(format!("appendonly {append}"));
            conf.push(format!("appendfsync {fsync}"));
            // A replica would wait five seconds for others to come along.
            conf.push("repl-diskless-sync-delay 0".to_owned());
        }
        if let Some(tls) = tls {
            conf.push(format!("tls-port {tls}"));
            conf.push(format!("tls-ca-cert-file \"{directory}/ca.pem\""));
            conf.push(format!("tls-cert-file \"{directory}/server.pem\""));
            conf.push(format!("tls-key-file \"{directory}/server.key\""));
            let mutual = self.tls.as_ref().is_some_and(|tls| tls.mutual);
            let clients = if mutual { "yes" } else { "no" };
            conf.push(format!("tls-auth-clients {clients}"));
        }
        if let Some(password) = &self.password {
            conf.push(format!("requirepass \"{password}\""));
            conf.push(format!("masterauth \"{password}\""));
        }
        if self.unix_socket {
            conf.push(format!("unixsocket \"{directory}/redis.sock\""));
        }
        if let Some(master) = self.replica_of {
            conf.push(format!("replicaof 127.0.0.1 {master}"));
        }
        conf.extend(self.lines.iter().cloned());
        conf.join("\n") + "\n"
    }
}
