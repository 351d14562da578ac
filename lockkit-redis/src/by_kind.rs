//! Which scripts a resource needs: a mutex is one key, everything else is a hall.

use std::sync::Arc;
use std::time::Duration;

use lockkit_core::{Claim, HoldId, Instant, Primitive, Released, Resource, Result};

use crate::mutex::Answer;
use crate::script::Script;
use crate::shared::Shared;

/// What a server may know of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Never,
    /// An earlier request may have taken something.
    Perhaps,
    /// It stands in line: asking again makes nothing new, so a full server takes it.
    InLine,
}

impl Asked {
    /// Which of two scripts that differ in what they may do on a full server.
    pub(crate) const fn choose<'a>(self, new: &'a Script, again: &'a Script) -> &'a Script {
        match self {
            Self::Never | Self::Perhaps => new,
            Self::InLine => again,
        }
    }
}

impl Shared {
    /// Takes a hold or a place in line.
    pub(crate) async fn attempt(
        self: &Arc<Self>,
        claim: &Claim,
        asked: Asked,
        sent_at: Instant,
    ) -> Result<Answer> {
        match claim.resource.primitive() {
            Primitive::Mutex => self.attempt_mutex(claim, asked, sent_at).await,
            // Boxed, so that the future of a mutex is as small as it can be.
            Primitive::Latch => Box::pin(self.attempt_latch(claim, asked)).await,
            _ => Box::pin(self.attempt_hall(claim, asked, sent_at)).await,
        }
    }

    /// Lets a hold or a place in line go; `evicted` to tell the holder that an operator took it.
    pub(crate) async fn release(self: &Arc<Self>, id: &HoldId, evicted: bool) -> Result<Released> {
        if !evicted {
            self.inbox.forget(id.attempt());
        }
        match id.resource().primitive() {
            Primitive::Mutex => self.release_mutex(id, evicted).await,
            _ => Box::pin(self.release_hall(id, evicted)).await,
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
