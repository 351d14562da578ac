//! One claim on its way.

use std::sync::Arc;

use async_trait::async_trait;
use lockkit_core::{Attempt, Claim, Primitive, Result, Ticket};
use tokio::sync::Notify;

use super::database::Database;
use super::gate::Ask;
use super::shared::Shared;
use super::shared_gate;
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
        loop {
            let ask = self.ask.clone();
            self.ask.again = true;
            let attempt = self
                .database
                .run(|c| Box::pin(async move { c.attempt(&ask).await }))
                .await?;
            match (&self.ask.waiting, attempt) {
                (Some(waiting), Attempt::Busy { .. }) => {
                    if watch::follow(&self.shared, self.ask.claim.attempt, waiting) {
                        continue;
                    }
                }
                _ => self.shared.bell.unfollow(self.ask.claim.attempt),
            }
            return Ok(attempt);
        }
    }

    async fn changed(&mut self) {
        // Nobody knows of a claim that does not wait, so nobody will wake it.
        let Some(waiting) = self.ask.waiting.clone() else {
            return std::future::pending().await;
        };
        loop {
            waiting.changed.notified().await;
            if self.ask.claim.resource.primitive() == Primitive::Mutex {
                return;
            }
            // Whoever stands in line for what several hold may only have others to watch now.
            let mut kept = Kept(Some(&waiting.changed));
            let ask = self.ask.clone();
            let is_worth_it = self
                .database
                .run(|c| Box::pin(async move { shared_gate::is_worth_it(c, &ask).await }))
                .await;
            kept.0 = None;
            // An error is for the next attempt to tell.
            if is_worth_it.unwrap_or(true) {
                return;
            }
            if watch::follow(&self.shared, self.ask.claim.attempt, &waiting) {
                return;
            }
        }
    }
}

/// A wake-up that is not lost if whoever was woken is dropped before it has looked.
struct Kept<'a>(Option<&'a Notify>);

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        if let Some(wake) = self.0 {
            wake.notify_one();
        }
    }
}
