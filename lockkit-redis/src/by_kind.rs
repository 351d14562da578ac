//! Which scripts a resource needs: a mutex is one key, everything else is a hall.

use std::time::Duration;

use lockkit_core::{Claim, HoldId, Instant, Primitive, Released, Resource, Result};

use crate::mutex::Answer;
use crate::shared::Shared;

impl Shared {
    /// Takes a hold or a place in line; `asked` if an earlier request may have done so.
    pub(crate) async fn attempt(
        &self,
        claim: &Claim,
        asked: bool,
        sent_at: Instant,
    ) -> Result<Answer> {
        match claim.resource.primitive() {
            Primitive::Mutex => self.attempt_mutex(claim, asked, sent_at).await,
            Primitive::Latch => self.attempt_latch(claim).await,
            _ => self.attempt_hall(claim, sent_at).await,
        }
    }

    /// Lets a hold or a place in line go; `evicted` to tell the holder that an operator took it.
    pub(crate) async fn release(&self, id: &HoldId, evicted: bool) -> Result<Released> {
        match id.resource().primitive() {
            Primitive::Mutex => self.release_mutex(id, evicted).await,
            _ => self.release_hall(id, evicted).await,
        }
    }

    /// See [`Backend::extend`](lockkit_core::Backend::extend).
    pub(crate) async fn extend(&self, id: &HoldId, ttl: Duration) -> Result<Option<Duration>> {
        match id.resource().primitive() {
            Primitive::Mutex => self.extend_mutex(id, ttl).await,
            _ => self.extend_hall(id, ttl).await,
        }
    }

    /// See [`Backend::request_release`](lockkit_core::Backend::request_release).
    pub(crate) async fn request_release(&self, resource: &Resource) -> Result<usize> {
        match resource.primitive() {
            Primitive::Mutex => self.request_mutex(resource).await,
            _ => self.request_hall(resource).await,
        }
    }
}
