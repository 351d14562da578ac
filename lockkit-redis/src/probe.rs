//! Is the server well?

use lockkit_core::Result;

use crate::error::translated;
use crate::shared::Shared;
use crate::transport::{Lane, Request};

impl Shared {
    /// See [`Backend::probe`](lockkit_core::Backend::probe).
    pub(crate) async fn probe(&self) -> Result<Vec<(&'static str, String)>> {
        let mut facts = Vec::new();
        for live in self.route.all().await? {
            live.send(&Request::new("PING")).await.map_err(translated)?;
            facts.push(("version", live.server.version.clone()));
        }
        Ok(facts)
    }

    /// Ends the connections, once what is on its way has been worked on.
    pub(crate) async fn close(&self) {
        // A server answers in the order in which it was asked; one that does not answer will not
        // do what it was asked either, or is told to forget this connection.
        for live in self.route.all().await.unwrap_or_default() {
            let _ = live.send(&Request::new("PING")).await;
        }
        let _ = Lane::Renewals;
        self.route.close();
    }
}
