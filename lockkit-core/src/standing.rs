//! A claim from its first request until it is held or withdrawn.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::core::Core;
use crate::{Attempt, Claim, ErrorKind, HoldId, Result, Ticket};

type Attempting = Pin<Box<dyn Future<Output = (Box<dyn Ticket>, Result<Attempt>)> + Send>>;

/// A claim that stands. Dropping it at any moment leaves nothing behind:
///
/// * before anything was sent, there is nothing to do;
/// * in the middle of a request, the request is handed to the runtime, finished there, and
///   whatever it brought is released;
/// * between requests, the place in line is withdrawn by the watchdog's task.
pub(crate) struct Standing<'a> {
    core: &'a Arc<Core>,
    id: HoldId,
    ttl: Duration,
    state: State,
    /// Whether the service may know this claim.
    known: bool,
    /// Keeps the locker from closing under a request.
    _open: TaskTrackerToken,
}

enum State {
    Resting(Box<dyn Ticket>),
    Attempting(Attempting),
    Over,
}

impl<'a> Standing<'a> {
    pub(crate) fn new(core: &'a Arc<Core>, claim: Claim) -> Result<Self> {
        let (id, ttl) = (claim.id(), claim.ttl);
        let ticket = core.backend.enter(claim)?;
        let state = State::Resting(ticket);
        let open = core.under_way();
        Ok(Self {
            core,
            id,
            ttl,
            state,
            known: false,
            _open: open,
        })
    }

    pub(crate) const fn id(&self) -> &HoldId {
        &self.id
    }

    /// One attempt. If this future is dropped, the request goes on in `self`.
    pub(crate) async fn attempt(&mut self) -> Result<Attempt> {
        if let State::Resting(mut ticket) = std::mem::replace(&mut self.state, State::Over) {
            self.state = State::Attempting(Box::pin(async move {
                let outcome = ticket.attempt().await;
                (ticket, outcome)
            }));
        }
        let outcome = poll_fn(|cx| self.poll_attempt(cx)).await;
        // After an error nobody knows whether the claim reached the service, unless the error
        // says that it was refused.
        self.known |= match &outcome {
            Ok(_) => true,
            Err(error) => {
                matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Unexpected)
            }
        };
        outcome
    }

    fn poll_attempt(&mut self, cx: &mut Context<'_>) -> Poll<Result<Attempt>> {
        let State::Attempting(request) = &mut self.state else {
            return Poll::Pending;
        };
        request.as_mut().poll(cx).map(|(ticket, outcome)| {
            self.state = State::Resting(ticket);
            outcome
        })
    }

    /// Returns when another attempt is worth it.
    pub(crate) async fn changed(&mut self) {
        match &mut self.state {
            State::Resting(ticket) => ticket.changed().await,
            State::Attempting(_) | State::Over => {}
        }
    }

    /// Ends the claim without a request: it became a hold, or the service never kept anything.
    pub(crate) fn settle(mut self) {
        self.state = State::Over;
    }
}

impl Drop for Standing<'_> {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Over => {}
            State::Resting(_) if !self.known => {}
            State::Resting(_) => self.core.watchdog.release_later(self.id.clone(), self.ttl),
            State::Attempting(request) => {
                self.core.watchdog.forget(&self.id);
                let core = Arc::clone(self.core);
                let (id, ttl) = (self.id.clone(), self.ttl);
                self.core.hand_over(async move {
                    drop(request.await);
                    core.watchdog.release_later(id, ttl);
                });
            }
        }
    }
}
