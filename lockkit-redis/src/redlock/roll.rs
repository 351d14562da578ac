//! Seeing to it that each node is another server.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use lockkit_core::{Error, ErrorKind, Result};

use super::descriptor::DRIVER;
use crate::config::Options;
use crate::connect::check_eviction;
use crate::transport::{Endpoint, Fixed, Locate, Server};

/// Which server process was met at each address.
#[derive(Debug)]
pub(crate) struct Roll(Mutex<Vec<Option<String>>>);

impl Roll {
    pub(crate) fn new(nodes: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(vec![None; nodes])))
    }

    /// Notes who is there; the other address at which the same one is, if there is one.
    fn met(&self, node: usize, run_id: &str) -> Option<usize> {
        let mut roll = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let twin = roll
            .iter()
            .enumerate()
            .find(|(other, met)| *other != node && met.as_deref() == Some(run_id));
        let twin = twin.map(|(other, _)| other);
        roll[node] = twin.is_none().then(|| run_id.to_owned());
        twin
    }
}

/// One of several servers that must not know of each other.
#[derive(Debug)]
pub(crate) struct Place {
    fixed: Fixed,
    node: usize,
    roll: Arc<Roll>,
    options: Options,
}

impl Place {
    pub(crate) fn new(
        endpoint: Endpoint,
        node: usize,
        roll: &Arc<Roll>,
        options: &Options,
    ) -> Self {
        Self {
            fixed: Fixed(endpoint),
            node,
            roll: Arc::clone(roll),
            options: options.clone(),
        }
    }
}

#[async_trait]
impl Locate for Place {
    async fn locate(&self) -> Result<Endpoint> {
        self.fixed.locate().await
    }

    fn check(&self, server: &Server) -> Result<()> {
        self.fixed.check(server)?;
        check_eviction(server, &self.options)?;
        if server.info("run_id").is_none() {
            let message = "this user may not run INFO, which tells a restarted server from one that \
                           remembers; allow it";
            return Err(Error::new(ErrorKind::PermissionDenied, message).on(DRIVER));
        }
        if let Some(twin) = self.roll.met(self.node, &server.run_id) {
            let message = "two of the addresses lead to one server, whose vote would count twice; \
                           name each server once";
            return Err(Error::new(ErrorKind::InvalidConfig, message)
                .on(DRIVER)
                .with("addresses", format!("{} and {}", twin + 1, self.node + 1)));
        }
        Ok(())
    }

    fn address(&self) -> String {
        self.fixed.address()
    }
}
