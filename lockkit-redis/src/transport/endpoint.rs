//! Where a server is, and how to log in.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// One server.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub(crate) address: Address,
    pub(crate) login: Login,
    pub(crate) database: i64,
    pub(crate) certificates: Certificates,
}

impl Endpoint {
    /// The same service on another server.
    pub(crate) fn at(&self, host: &str, port: u16) -> Self {
        Self {
            address: self.address.at(host, port),
            ..self.clone()
        }
    }
}

impl fmt::Display for Endpoint {
    /// Writes the address, never the login.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Address {
    Tcp {
        host: String,
        port: u16,
    },
    #[cfg(feature = "tls")]
    Tls {
        host: String,
        port: u16,
    },
    Unix(PathBuf),
}

impl Address {
    fn at(&self, host: &str, port: u16) -> Self {
        let host = host.to_owned();
        match self {
            #[cfg(feature = "tls")]
            Self::Tls { .. } => Self::Tls { host, port },
            Self::Tcp { .. } | Self::Unix(_) => Self::Tcp { host, port },
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } => write_host(f, host, *port),
            #[cfg(feature = "tls")]
            Self::Tls { host, port } => write_host(f, host, *port),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

fn write_host(f: &mut fmt::Formatter<'_>, host: &str, port: u16) -> fmt::Result {
    if host.contains(':') {
        write!(f, "[{host}]:{port}")
    } else {
        write!(f, "{host}:{port}")
    }
}

/// Who logs in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Login {
    pub(crate) user: Option<String>,
    pub(crate) password: Option<Secret>,
}

/// A password: it shows itself only to who asks for it by name.
#[derive(Clone)]
pub(crate) struct Secret(Arc<str>);

impl Secret {
    pub(crate) fn new(text: &str) -> Self {
        Self(text.into())
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// What TLS needs beyond the system's own list of authorities, as PEM.
#[derive(Clone, Default)]
pub(crate) struct Certificates {
    pub(crate) authority: Option<Vec<u8>>,
    /// Certificate and key of this client.
    pub(crate) client: Option<(Vec<u8>, Vec<u8>)>,
}

#[cfg(feature = "tls")]
impl Certificates {
    pub(super) fn for_library(&self) -> redis::TlsCertificates {
        redis::TlsCertificates {
            client_tls: self
                .client
                .as_ref()
                .map(|(certificate, key)| redis::ClientTlsConfig {
                    client_cert: certificate.clone(),
                    client_key: key.clone(),
                }),
            root_cert: self.authority.clone(),
        }
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates")
            .field("authority", &self.authority.is_some())
            .field("client", &self.client.is_some())
            .finish()
    }
}
