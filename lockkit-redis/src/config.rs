//! The URL: `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE][?…]` and its relatives.

use std::path::PathBuf;
use std::time::Duration;

use lockkit_core::{Error, ErrorKind, Result};
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Deserializer, de};
use url::Url;

use crate::descriptor::DRIVER;
use crate::transport::{Address, Certificates, Endpoint, Login, Secret, Settings};

/// Where a server listens unless the URL says otherwise.
const PORT: u16 = 6379;
/// The same for a sentinel.
const SENTINEL_PORT: u16 = 26_379;

/// A URL, read.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) topology: Topology,
    pub(crate) options: Options,
}

/// Which servers there are.
#[derive(Clone, Debug)]
pub(crate) enum Topology {
    /// One.
    Single(Endpoint),
    /// A master with replicas, found by asking sentinels for its name.
    Sentinel {
        sentinels: Vec<Endpoint>,
        service: String,
        /// How to log in at the master; where it is, the sentinels say.
        master: Endpoint,
    },
    /// A cluster, found by asking any of these nodes.
    Cluster(Vec<Endpoint>),
    /// Several that know nothing of each other, for RedLock.
    Independent(Vec<Endpoint>),
}

/// What may stand behind the `?`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Options {
    /// What every key begins with.
    #[serde(deserialize_with = "prefix")]
    pub(crate) prefix: String,
    /// How long one request may take.
    #[serde(deserialize_with = "timeout")]
    pub(crate) timeout: Duration,
    /// How often to look whether an idle server is there.
    #[serde(deserialize_with = "heartbeat")]
    pub(crate) heartbeat: Duration,
    /// Whether a password may travel in clear to another machine.
    #[serde(deserialize_with = "yes")]
    pub(crate) allow_plaintext: bool,
    /// Whether the server may throw keys away when its memory is full.
    #[serde(deserialize_with = "yes")]
    pub(crate) allow_eviction: bool,
    /// How many replicas must have a grant before it counts.
    #[serde(deserialize_with = "replicas")]
    pub(crate) replicas: u32,
    #[serde(deserialize_with = "strategy")]
    pub(crate) strategy: Strategy,
    /// The longest lease that any client takes; of RedLock only.
    #[serde(deserialize_with = "max_lease")]
    pub(crate) max_lease: Option<Duration>,
    /// A file with the password.
    password_file: Option<PathBuf>,
    /// Who signed the server's certificate, as a PEM file.
    ca: Option<PathBuf>,
    /// The certificate of this client, as a PEM file.
    cert: Option<PathBuf>,
    /// The key of that certificate.
    key: Option<PathBuf>,
    sentinel_user: Option<String>,
    sentinel_password: Option<Hidden>,
}

/// How locks are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strategy {
    /// In scripts, with a queue, fences and messages.
    Direct,
    /// A bare key, and polling.
    Simple,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            prefix: "lk".into(),
            timeout: Duration::from_secs(1),
            heartbeat: Duration::from_secs(5),
            allow_plaintext: false,
            allow_eviction: false,
            replicas: 0,
            strategy: Strategy::Direct,
            max_lease: None,
            password_file: None,
            ca: None,
            cert: None,
            key: None,
            sentinel_user: None,
            sentinel_password: None,
        }
    }
}

impl Options {
    pub(crate) const fn settings(&self) -> Settings {
        Settings {
            timeout: self.timeout,
            heartbeat: self.heartbeat,
        }
    }
}

/// A password in the options.
#[derive(Clone, Debug)]
struct Hidden(Secret);

impl<'de> Deserialize<'de> for Hidden {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        Ok(Self(Secret::new(&String::deserialize(value)?)))
    }
}

impl Config {
    /// Reads a URL. Opens no connection; reads the files that it names.
    pub(crate) fn parse(url: &str) -> Result<Self> {
        let (scheme, rest) = url
            .split_once(':')
            .ok_or_else(|| invalid("not a Redis URL; write redis://HOST:PORT"))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let options: Options = serde_urlencoded::from_str(query)
            .map_err(|error| invalid(format!("in the URL behind `?`: {error}")))?;
        let authority = Authority::parse(rest)?;
        let topology = match scheme {
            "redis" => {
                let addresses = authority.addresses(PORT, false)?;
                let [address] = <[Address; 1]>::try_from(addresses).map_err(|_| {
                    invalid(
                        "redis:// is one server; for several write redis+sentinel://, \
                         redis+cluster:// or redlock://",
                    )
                })?;
                Topology::Single(authority.endpoint(address, &options, true)?)
            }
            "rediss" => {
                let addresses = authority.addresses(PORT, true)?;
                let [address] = <[Address; 1]>::try_from(addresses)
                    .map_err(|_| invalid("rediss:// is one server"))?;
                Topology::Single(authority.endpoint(address, &options, true)?)
            }
            "redis+unix" => {
                let path = decoded(&authority.path)?;
                if !path.starts_with('/') || !authority.hosts.is_empty() {
                    return Err(invalid(
                        "a socket is named by its full path; write redis+unix:///run/redis.sock",
                    ));
                }
                let address = Address::Unix(path.into());
                Topology::Single(authority.endpoint(address, &options, false)?)
            }
            "redis+sentinel" | "rediss+sentinel" => sentinel(scheme, &authority, &options)?,
            "redis+cluster" | "rediss+cluster" => {
                let addresses = authority.addresses(PORT, scheme.starts_with("rediss"))?;
                let nodes = addresses
                    .into_iter()
                    .map(|address| authority.endpoint(address, &options, true));
                let nodes: Vec<Endpoint> = nodes.collect::<Result<_>>()?;
                if nodes.iter().any(|node| node.database != 0) {
                    return Err(invalid("a cluster has no databases; leave the number away"));
                }
                Topology::Cluster(nodes)
            }
            "redlock" | "rediss+redlock" => {
                let addresses = authority.addresses(PORT, scheme.starts_with("rediss"))?;
                let nodes = addresses
                    .into_iter()
                    .map(|address| authority.endpoint(address, &options, true));
                Topology::Independent(nodes.collect::<Result<_>>()?)
            }
            _ => return Err(invalid("not a Redis URL; write redis://HOST:PORT")),
        };
        if options.max_lease.is_some() && !matches!(topology, Topology::Independent(_)) {
            return Err(invalid(
                "`max_lease` is an option of redlock:// only; leave it away",
            ));
        }
        Ok(Self { topology, options })
    }
}

fn sentinel(scheme: &str, authority: &Authority, options: &Options) -> Result<Topology> {
    let tls = scheme.starts_with("rediss");
    let mut path = authority.path.trim_start_matches('/').splitn(2, '/');
    let service = decoded(path.next().unwrap_or_default())?;
    if service.is_empty() {
        return Err(invalid(
            "the name of the master is missing; write redis+sentinel://H1:P1,H2:P2,H3:P3/NAME",
        ));
    }
    let database = path.next().unwrap_or_default();
    let addresses = authority.addresses(SENTINEL_PORT, tls)?;
    let first = addresses[0].clone();
    let mut master = authority.endpoint(first, options, false)?;
    master.database = number(database)?;
    // Sentinels have logins of their own.
    let login = Login {
        user: options.sentinel_user.clone(),
        password: options.sentinel_password.clone().map(|hidden| hidden.0),
    };
    let sentinels = addresses.into_iter().map(|address| Endpoint {
        address,
        login: login.clone(),
        database: 0,
        certificates: master.certificates.clone(),
    });
    Ok(Topology::Sentinel {
        sentinels: sentinels.collect(),
        service,
        master,
    })
}

/// What stands between the scheme and the `?`.
struct Authority {
    login: Login,
    hosts: Vec<String>,
    path: String,
}

impl Authority {
    fn parse(rest: &str) -> Result<Self> {
        let rest = rest.strip_prefix("//").ok_or_else(|| {
            invalid("two slashes are missing behind the colon; write redis://HOST:PORT")
        })?;
        let (authority, path) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, ""),
        };
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((login, hosts)) => (Some(login), hosts),
            None => (None, authority),
        };
        let login = login.map(Self::login).transpose()?.unwrap_or_default();
        let hosts = hosts.split(',').filter(|host| !host.is_empty());
        Ok(Self {
            login,
            hosts: hosts.map(str::to_owned).collect(),
            path: path.to_owned(),
        })
    }

    fn login(text: &str) -> Result<Login> {
        let (user, password) = text.split_once(':').unwrap_or(("", text));
        let user = decoded(user)?;
        let password = decoded(password)?;
        Ok(Login {
            user: (!user.is_empty()).then_some(user),
            password: (!password.is_empty()).then(|| Secret::new(&password)),
        })
    }

    fn addresses(&self, port: u16, tls: bool) -> Result<Vec<Address>> {
        if self.hosts.is_empty() {
            return Err(invalid("the host is missing; write redis://HOST:PORT"));
        }
        self.hosts
            .iter()
            .map(|host| address(host, port, tls))
            .collect()
    }

    fn endpoint(&self, address: Address, options: &Options, numbered: bool) -> Result<Endpoint> {
        let mut login = self.login.clone();
        if let Some(file) = &options.password_file {
            let text = read(file, "password_file")?;
            let text = String::from_utf8(text)
                .map_err(|_| invalid("password_file is not UTF-8; write the password as text"))?;
            login.password = Some(Secret::new(text.trim_end_matches(['\r', '\n'])));
        }
        let optional =
            |file: &Option<PathBuf>, name| file.as_ref().map(|file| read(file, name)).transpose();
        let client = match (
            optional(&options.cert, "cert")?,
            optional(&options.key, "key")?,
        ) {
            (Some(cert), Some(key)) => Some((cert, key)),
            (None, None) => None,
            _ => return Err(invalid("`cert` and `key` belong together; give both")),
        };
        let certificates = Certificates {
            authority: optional(&options.ca, "ca")?,
            client,
        };
        let database = if numbered {
            number(self.path.trim_start_matches('/'))?
        } else {
            0
        };
        let endpoint = Endpoint {
            address,
            login,
            database,
            certificates,
        };
        check_plaintext(&endpoint, options)?;
        Ok(endpoint)
    }
}

fn address(text: &str, port: u16, tls: bool) -> Result<Address> {
    // The text may be half a password: it is never repeated.
    let wrong = || invalid("a server is HOST:PORT, with a port of 1 to 65535; check the URL");
    let url = Url::parse(&format!("redis://{text}")).map_err(|_| wrong())?;
    let host = url.host_str().ok_or_else(wrong)?;
    let host = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .to_owned();
    let port = match url.port() {
        Some(0) => return Err(wrong()),
        Some(port) => port,
        None => port,
    };
    match tls {
        false => Ok(Address::Tcp { host, port }),
        #[cfg(feature = "tls")]
        true => Ok(Address::Tls { host, port }),
        #[cfg(not(feature = "tls"))]
        true => Err(invalid(
            "this build has no TLS; enable the cargo feature `tls`",
        )),
    }
}

/// A password in clear on a network is a password given away.
fn check_plaintext(endpoint: &Endpoint, options: &Options) -> Result<()> {
    let Address::Tcp { host, .. } = &endpoint.address else {
        return Ok(());
    };
    let is_local = host == "localhost"
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback());
    if is_local || options.allow_plaintext || endpoint.login.password.is_none() {
        return Ok(());
    }
    Err(invalid(
        "a password would travel in clear to another machine; write rediss:// for TLS, or \
         `allow_plaintext=true` if the network is safe",
    ))
}

fn number(text: &str) -> Result<i64> {
    if text.is_empty() {
        return Ok(0);
    }
    let number: Option<u16> = text.parse().ok();
    number.map(i64::from).ok_or_else(|| {
        invalid("what follows the host is the number of a database, such as redis://HOST:PORT/1")
    })
}

fn decoded(text: &str) -> Result<String> {
    let text = percent_decode_str(text).decode_utf8();
    text.map(String::from)
        .map_err(|_| invalid("the URL is not UTF-8 once decoded; check its %XX"))
}

fn read(file: &PathBuf, option: &'static str) -> Result<Vec<u8>> {
    std::fs::read(file).map_err(|error| {
        invalid(format!("the file of `{option}` cannot be read"))
            .with("path", file.display())
            .because(error)
    })
}

pub(crate) fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidConfig, message).on(DRIVER)
}

fn prefix<'de, D: Deserializer<'de>>(value: D) -> Result<String, D::Error> {
    let text = String::deserialize(value)?;
    let fits = (1..=32).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    if fits {
        return Ok(text);
    }
    Err(de::Error::custom(
        "prefix is 1 to 32 letters, digits, `_` and `-`",
    ))
}

fn timeout<'de, D: Deserializer<'de>>(value: D) -> Result<Duration, D::Error> {
    duration(
        value,
        "timeout",
        Duration::from_millis(10),
        Duration::from_secs(60),
    )
}

fn heartbeat<'de, D: Deserializer<'de>>(value: D) -> Result<Duration, D::Error> {
    duration(
        value,
        "heartbeat",
        Duration::from_millis(50),
        Duration::from_secs(600),
    )
}

fn duration<'de, D: Deserializer<'de>>(
    value: D,
    name: &str,
    least: Duration,
    most: Duration,
) -> Result<Duration, D::Error> {
    let text = String::deserialize(value)?;
    let parsed = humantime::parse_duration(&text).ok();
    parsed
        .filter(|time| (least..=most).contains(time))
        .ok_or_else(|| {
            de::Error::custom(format!(
                "{name} is a time of {} to {}, such as 2s, not `{text}`",
                humantime::format_duration(least),
                humantime::format_duration(most),
            ))
        })
}

fn max_lease<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Duration>, D::Error> {
    let (least, most) = (
        Duration::from_millis(100),
        Duration::from_secs(24 * 60 * 60),
    );
    duration(value, "max_lease", least, most).map(Some)
}

fn yes<'de, D: Deserializer<'de>>(value: D) -> Result<bool, D::Error> {
    let text = String::deserialize(value)?;
    text.parse()
        .map_err(|_| de::Error::custom(format!("true or false was expected, not `{text}`")))
}

fn replicas<'de, D: Deserializer<'de>>(value: D) -> Result<u32, D::Error> {
    let text = String::deserialize(value)?;
    text.parse()
        .ok()
        .filter(|count| *count <= 100)
        .ok_or_else(|| de::Error::custom(format!("replicas is a number of 0 to 100, not `{text}`")))
}

fn strategy<'de, D: Deserializer<'de>>(value: D) -> Result<Strategy, D::Error> {
    match String::deserialize(value)?.as_str() {
        "direct" => Ok(Strategy::Direct),
        "simple" => Ok(Strategy::Simple),
        text => Err(de::Error::custom(format!(
            "strategy is direct or simple, not `{text}`"
        ))),
    }
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
