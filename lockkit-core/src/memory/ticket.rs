//! A claim on a memory store.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Notify;

use super::MemoryStore;
use crate::{Attempt, Claim, Notices, Result, Ticket};

#[derive(Debug)]
pub(super) struct MemoryTicket {
    pub(super) store: MemoryStore,
    pub(super) claim: Claim,
    pub(super) notices: Notices,
    /// There once the claim is in line. Keeps a ring that comes between two waits.
    pub(super) wake: Option<Arc<Notify>>,
}

#[async_trait]
impl Ticket for MemoryTicket {
    async fn attempt(&mut self) -> Result<Attempt> {
        let (claim, wake, notices) = (&self.claim, &mut self.wake, &self.notices);
        self.store.enter(&claim.resource, |entry, step| {
            let grant = entry.attempt(claim, wake, notices, step)?;
            Ok(match grant {
                Some(grant) => Attempt::Held(grant),
                None => Attempt::Busy {
                    recheck_after: entry.first_expiry(step.now),
                },
            })
        })
    }

    async fn changed(&mut self) {
        match &self.wake {
            Some(wake) => wake.notified().await,
            None => std::future::pending().await,
        }
    }
}
