//! A claim from its first request until it is held or withdrawn.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::core::Core;
use crate::place::Place;
use crate::undo::Undo;
use crate::watchdog::Watched;
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
    /// There once it waits.
    place: Option<Arc<Place>>,
    /// From before an attempt until its outcome is settled: keeps the locker from closing
    /// meanwhile.
    open: Option<TaskTrackerToken>,
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
        Ok(Self {
            core,
            id,
            ttl,
            state: State::Resting(ticket),
            known: false,
            place: None,
            open: None,
        })
    }

    pub(crate) const fn id(&self) -> &HoldId {
        &self.id
    }

    /// One attempt. If this future is dropped, the request goes on in `self`.
    pub(crate) async fn attempt(&mut self) -> Result<Attempt> {
        // First the token, then the look: a close in between waits for the token.
        self.open = Some(self.core.under_way());
        if let Err(error) = self.check_wanted() {
            self.rest();
            return Err(error);
        }
        if let State::Resting(mut ticket) = std::mem::replace(&mut self.state, State::Over) {
            self.known = true;
            self.state = State::Attempting(Box::pin(async move {
                let outcome = ticket.attempt().await;
                (ticket, outcome)
            }));
        }
        poll_fn(|cx| self.poll_attempt(cx)).await
    }

    fn check_wanted(&self) -> Result<()> {
        let wanted = self
            .place
            .as_ref()
            .is_none_or(|place| place.begin_attempt());
        if self.core.closed.is_cancelled() {
            return Err(self.core.closed_error());
        }
        if wanted {
            return Ok(());
        }
        let message = "this claim was withdrawn by its id; ask again to wait again";
        Err(self.core.error(ErrorKind::Lost, message))
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

    /// After a busy attempt: waits in line, kept alive by the watchdog. From here on whoever
    /// closes the locker, or releases this id, withdraws the place.
    pub(crate) fn rest(&mut self) -> Option<&Arc<Place>> {
        if self.known && self.place.is_none() {
            let place = Arc::new(Place::new(self.id.clone()));
            if self.core.watchdog.watch_place(&place, self.ttl) == Watched::Gone {
                place.withdraw();
                place.news.notify_one();
            }
            self.place = Some(place);
        }
        if let Some(place) = &self.place {
            place.rest();
        }
        // A close that has begun may have left the place to this claim, and waits until it is
        // withdrawn; one that begins now withdraws it.
        if !self.core.closed.is_cancelled() {
            self.open = None;
        }
        self.place.as_ref()
    }

    /// Returns when another attempt is worth it.
    pub(crate) async fn changed(&mut self) {
        match &mut self.state {
            State::Resting(ticket) => ticket.changed().await,
            State::Attempting(_) | State::Over => {}
        }
    }

    /// Whether the service may know a place in line of it.
    pub(crate) const fn has_stood(&self) -> bool {
        self.place.is_some()
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
                let undo = Undo::new(self.core, self.id.clone(), self.ttl);
                self.core.hand_over(async move {
                    drop(request.await);
                    drop(undo);
                });
            }
        }
    }
}
