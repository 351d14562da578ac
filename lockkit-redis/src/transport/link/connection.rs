//! How a connection is made.

use std::sync::{Arc, OnceLock};

use lockkit_core::{Error, ErrorKind, Result};
use tokio::sync::watch;
use tokio::time::timeout;

use super::doubt::Doubt;
use super::handle::Shared;
use crate::descriptor::DRIVER;
use crate::error::translated;
use crate::transport::live::Live;
use crate::transport::{Address, Failure, Push, Request, Server, driver};

/// A connection, and what tells about it.
pub(super) struct Connection {
    pub(super) live: Arc<Live>,
    pub(super) address: Address,
    pub(super) doubt: Arc<Doubt>,
    pub(super) moves: Option<watch::Receiver<u64>>,
}

impl Shared {
    /// Makes one connection and sees that it is fit for use. `old` is the one that it replaces.
    pub(super) async fn connect(&self, old: Option<&Server>) -> Result<Connection> {
        let limit = self.settings.timeout;
        // First the ear, then the question: what changes in between is heard.
        let moves = self.locate.moves();
        let endpoint = self.locate.locate().await?;
        let doubt = Arc::new(Doubt::default());
        let reign = Arc::new(OnceLock::<String>::new());
        let ear = {
            let (ears, doubt) = (Arc::clone(&self.ears), Arc::clone(&doubt));
            let reign = Arc::clone(&reign);
            Arc::new(move |push| match push {
                Push::Message(message) => {
                    ears.heard(&message, reign.get().map_or("", String::as_str));
                }
                Push::Unsubscribed => ears.missed(),
                Push::Disconnected => doubt.about(&Failure::Broken(String::new())),
            })
        };
        let made = timeout(limit, async {
            let transport = driver::connect(&endpoint, limit, ear)
                .await
                .map_err(translated)?;
            let server = Server::ask(&*transport).await?.at(&endpoint);
            Ok((transport, server))
        });
        let context = |error: Error| error.with("server", &endpoint);
        let (transport, server) = made
            .await
            .unwrap_or_else(|_| Err(too_slow()))
            .map_err(context)?;
        self.locate.check(&server).map_err(context)?;
        reign.get_or_init(|| server.reign.clone());
        let live = Arc::new(Live::new(transport, server, limit, Arc::clone(&doubt)));
        if let Some(old) = old {
            // What was sent on the old connection and not read yet must not take effect after
            // what is sent on the new one. A server that does not allow this leaves such a
            // request a small chance, which costs one lease.
            let kill = Request::new("CLIENT KILL ID").arg(old.connection.to_string());
            let same = old.run_id == live.server.run_id;
            if same && let Err(Failure::Broken(_) | Failure::Silent(_)) = live.send(&kill).await {
                return Err(context(too_slow()));
            }
        }
        for channel in self.ears.channels() {
            match live.subscribe(&channel, self.ears.are_sharded()).await {
                Ok(()) => {}
                Err(failure @ Failure::Refused { .. }) => self.ears.deaf(&failure),
                Err(failure) => return Err(context(translated(failure))),
            }
        }
        Ok(Connection {
            live,
            address: endpoint.address,
            doubt,
            moves,
        })
    }
}

fn too_slow() -> Error {
    Error::new(
        ErrorKind::Unavailable,
        "the server took the connection and did not answer in time",
    )
    .on(DRIVER)
}
