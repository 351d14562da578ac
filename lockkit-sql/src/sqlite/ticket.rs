//! One claim on its way.

use std::sync::Arc;

use async_trait::async_trait;
use lockkit_core::{Attempt, Claim, Result, Ticket};

use super::database::Database;
use super::gate::Ask;
use super::shared::Shared;
use super::watch;

#[derive(Debug)]
pub(super) struct SqliteTicket {
    shared: Arc<Shared>,
    database: Database,
    ask: Ask,
}

impl SqliteTicket {
    pub(super) fn new(shared: Arc<Shared>, database: Database, claim: Claim) -> Self {
        let key = claim.resource.key().into();
        let ask = Ask {
            claim: Arc::new(claim),
            key,
            waiting: None,
            again: false,
        };
        Self {
            shared,
            database,
            ask,
        }
    }
}

#[async_trait]
impl Ticket for SqliteTicket {
    async fn attempt(&mut self) -> Result<Attempt> {
        let claim = &self.ask.claim;
        if claim.wait && self.ask.waiting.is_none() {
            // Before the first request, so that no bell can be missed.
            self.ask.waiting = Some(self.shared.registry.announce(claim.id()));
        }
        let ask = self.ask.clone();
        self.ask.again = true;
        let attempt = self
            .database
            .run(|c| Box::pin(async move { c.attempt(&ask).await }))
            .await?;
        match (&self.ask.waiting, attempt) {
            (Some(waiting), Attempt::Busy { .. }) => {
                watch::follow(&self.shared, self.ask.claim.attempt, waiting);
            }
            _ => self.shared.bell.unfollow(self.ask.claim.attempt),
        }
        Ok(attempt)
    }

    async fn changed(&mut self) {
        match &self.ask.waiting {
            Some(waiting) => waiting.changed.notified().await,
            // Nobody knows of a claim that does not wait, so nobody will wake it.
            None => std::future::pending().await,
        }
    }
}
