//! One master of a cluster.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use async_trait::async_trait;
use lockkit_core::{Error, ErrorKind, Result};

use super::channels::{Channels, ResumeEars};
use super::nodes::Cluster;
use crate::descriptor::DRIVER;
use crate::transport::link::closed;
use crate::transport::locate::check_master;
use crate::transport::slots::redirection;
use crate::transport::{Address, Endpoint, Link, Locate, Node, Server};

/// One master, and the channels that are heard on it.
pub(super) struct Member {
    pub(super) endpoint: Endpoint,
    pub(super) node: Node,
    /// A connection of its own: when a slot moves away, the server ends the subscription unasked,
    /// which the client library takes for the answer to a request.
    pub(super) ear: Link,
    pub(super) channels: Arc<Channels>,
}

impl Member {
    /// Where it sends somebody whom it cannot serve: `MOVED` or `ASK`.
    pub(super) fn sends_to(&self, detail: &str) -> Option<Endpoint> {
        let (host, port) = redirection(detail)?;
        Some(match (host, &self.endpoint.address) {
            ("", Address::Tcp { host, .. }) => self.endpoint.at(host, port),
            #[cfg(feature = "tls")]
            ("", Address::Tls { host, .. }) => self.endpoint.at(host, port),
            _ => self.endpoint.at(host, port),
        })
    }
}

impl Cluster {
    /// The connections to a node; makes them if there are none.
    pub(super) async fn member_at(&self, endpoint: Endpoint) -> Result<Arc<Member>> {
        let name = endpoint.to_string();
        if let Some(member) = self.map().members.get(&name) {
            return Ok(Arc::clone(member));
        }
        let locate = Arc::new(Master(endpoint.clone()));
        let channels = Arc::new(Channels::new(Arc::clone(&self.ears)));
        let (node, ear) = futures_util::try_join!(
            Node::open(
                Arc::<Master>::clone(&locate),
                Arc::new(ResumeEars {
                    ears: Arc::clone(&self.ears),
                    trouble: Arc::clone(&self.trouble),
                }),
                self.settings
            ),
            Link::open(
                Arc::<Master>::clone(&locate),
                Arc::<Channels>::clone(&channels),
                self.settings
            ),
        )?;
        let member = Arc::new(Member {
            endpoint,
            node,
            ear,
            channels,
        });
        let mut map = self.map.write().unwrap_or_else(PoisonError::into_inner);
        if self.closed.load(Ordering::SeqCst) {
            return Err(closed());
        }
        Ok(Arc::clone(map.members.entry(name).or_insert(member)))
    }
}

/// A node that must be a master of a cluster.
#[derive(Debug)]
struct Master(Endpoint);

#[async_trait]
impl Locate for Master {
    async fn locate(&self) -> Result<Endpoint> {
        Ok(self.0.clone())
    }

    fn check(&self, server: &Server) -> Result<()> {
        if server.version_number() < (7, 0) {
            let message = "a cluster has to be of 7.0 or newer, which has channels of slots; \
                           upgrade it";
            return Err(Error::new(ErrorKind::Unsupported, message)
                .on(DRIVER)
                .with("version", &server.version));
        }
        check_master(server)
    }

    fn address(&self) -> String {
        self.0.to_string()
    }
}
