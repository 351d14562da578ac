//! Where a server is at the moment.

use std::fmt::Debug;

use async_trait::async_trait;
use lockkit_core::{Error, ErrorKind, Result};
use tokio::sync::watch;

use super::{Endpoint, Server};
use crate::descriptor::DRIVER;

/// Finds the server that a link is for, each time it connects.
#[async_trait]
pub(crate) trait Locate: Debug + Send + Sync {
    /// Where it is now.
    async fn locate(&self) -> Result<Endpoint>;

    /// Whether the server that answered is the right one.
    fn check(&self, server: &Server) -> Result<()>;

    /// Changes each time it is heard to have moved elsewhere, if that can be heard.
    fn moves(&self) -> Option<watch::Receiver<u64>> {
        None
    }

    /// Nobody will ask again.
    fn close(&self) {}

    /// Where it is meant to be, for people.
    fn address(&self) -> String;
}

/// A server that stays where it is.
#[derive(Debug)]
pub(crate) struct Fixed(pub(crate) Endpoint);

#[async_trait]
impl Locate for Fixed {
    async fn locate(&self) -> Result<Endpoint> {
        Ok(self.0.clone())
    }

    fn check(&self, server: &Server) -> Result<()> {
        if server.is_sentinel {
            let message = "this server is a sentinel; write redis+sentinel://HOST:PORT/NAME";
            return Err(Error::new(ErrorKind::InvalidConfig, message).on(DRIVER));
        }
        if server.is_cluster {
            let message = "this server is a node of a cluster; write redis+cluster://HOST:PORT";
            return Err(Error::new(ErrorKind::InvalidConfig, message).on(DRIVER));
        }
        check_master(server)
    }

    fn address(&self) -> String {
        self.0.to_string()
    }
}

/// A replica refuses to write, and what it shows is old.
pub(super) fn check_master(server: &Server) -> Result<()> {
    if !server.is_replica {
        return Ok(());
    }
    // Worth another look: it may be promoted, or an address may move to the master.
    let message = "this server is a replica; give the address of the master, or \
                   redis+sentinel:// to follow it";
    Err(Error::new(ErrorKind::Unavailable, message).on(DRIVER))
}
