//! The first words on a connection: who is there?

use lockkit_core::{Error, ErrorKind, Result};

use super::{Endpoint, Reply, Request, Transport};
use crate::descriptor::DRIVER;
use crate::error::translated;

/// The oldest server that is supported.
const OLDEST: (u32, u32) = (6, 2);

/// What a server says of itself.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    /// Where it was met, for people; empty if that was not said.
    pub(crate) address: String,
    pub(crate) version: String,
    /// Drawn anew each time the server process starts. Made up by us where it is not told.
    pub(crate) run_id: String,
    /// Drawn anew each time a server process starts or becomes a master: who was a replica in
    /// between knows only what its master told it. Made up by us where it is not told: then each
    /// connection counts as a reign of its own, which is safe.
    pub(crate) reign: String,
    /// Whether `reign` was told.
    pub(crate) is_reign_told: bool,
    pub(crate) is_replica: bool,
    pub(crate) is_cluster: bool,
    pub(crate) is_sentinel: bool,
    /// The id of this connection.
    pub(crate) connection: i64,
    /// What else `INFO` says, as lines `name:value`; empty where it is not allowed.
    pub(crate) info: String,
    /// When it writes its log of changes to disk; `None` where it is not told.
    pub(crate) appendfsync: Option<String>,
}

impl Server {
    /// Asks the server about itself.
    pub(super) async fn ask(transport: &dyn Transport) -> Result<Self> {
        let questions = [
            Request::new("HELLO"),
            Request::new("INFO"),
            Request::new("CONFIG GET appendfsync"),
        ];
        let mut answers = transport
            .send_all(&questions)
            .await
            .map_err(translated)?
            .into_iter();
        let hello = answers.next().transpose().map_err(translated)?;
        let hello = hello.unwrap_or(Reply::Nil);
        let text = |key| {
            hello
                .field(key)
                .and_then(Reply::as_text)
                .unwrap_or_default()
        };
        let info = answers.next().and_then(Result::ok);
        let info = info.as_ref().and_then(Reply::as_text).unwrap_or_default();
        let config = answers.next().and_then(Result::ok);
        let reign = reign(info);
        let server = Self {
            address: String::new(),
            version: text("version").to_owned(),
            run_id: line(info, "run_id").map_or_else(made_up, str::to_owned),
            is_reign_told: reign.is_some(),
            reign: reign.map_or_else(made_up, str::to_owned),
            is_replica: text("role") == "replica",
            is_cluster: text("mode") == "cluster",
            is_sentinel: text("mode") == "sentinel",
            connection: hello.field("id").and_then(Reply::as_int).unwrap_or(0),
            info: info.to_owned(),
            appendfsync: config
                .as_ref()
                .and_then(|reply| Some(reply.field("appendfsync")?.as_text()?.to_owned())),
        };
        server.check_version()?;
        Ok(server)
    }

    /// The same, met there.
    pub(super) fn at(self, endpoint: &Endpoint) -> Self {
        let address = endpoint.to_string();
        Self { address, ..self }
    }

    /// A fact out of `INFO`.
    pub(crate) fn info(&self, name: &str) -> Option<&str> {
        line(&self.info, name)
    }

    /// Whether these two are known to differ in what they know.
    pub(super) fn differs_from(&self, other: &Self) -> bool {
        self.is_reign_told && other.is_reign_told && self.reign != other.reign
    }

    /// Whether scripts may begin with `#!lua flags=…`.
    pub(crate) fn knows_script_flags(&self) -> bool {
        self.version_number() >= (7, 0)
    }

    pub(crate) fn version_number(&self) -> (u32, u32) {
        let mut parts = self
            .version
            .split('.')
            .map(|part| part.parse().unwrap_or(0));
        (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
    }

    fn check_version(&self) -> Result<()> {
        if self.version_number() >= OLDEST {
            return Ok(());
        }
        let (major, minor) = OLDEST;
        let message = format!(
            "the server is too old; {major}.{minor} is the oldest that works, so upgrade it"
        );
        Err(Error::new(ErrorKind::Unsupported, message)
            .on(DRIVER)
            .with("version", &self.version))
    }
}

/// Under what name the data is that a master has, out of `INFO`.
pub(super) fn reign(info: &str) -> Option<&str> {
    line(info, "master_replid")
}

fn line<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found == name).then_some(value.trim_end())
    })
}

fn made_up() -> String {
    format!("{:032x}", rand::random::<u128>())
}
