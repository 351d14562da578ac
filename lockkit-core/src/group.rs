//! The names of a multi-lock on one locker, and what is held of them.

use std::sync::Arc;

use crate::Result;
use crate::acquire::{Patience, Request, acquire};
use crate::core::Core;
use crate::end::End;
use crate::hold::Hold;
use crate::part::Part;
use crate::together::{AllAtOnce, hold_all};
use crate::within::within;

/// The parts on one locker, sorted by resource, each once.
pub(crate) struct Group {
    pub(crate) core: Arc<Core>,
    pub(crate) requests: Vec<Request>,
}

impl Group {
    /// Holds all of them if all are free, and `end` does not come before the last is asked for.
    pub(crate) async fn try_hold(&self, end: End) -> Result<Option<Vec<Part>>> {
        if end.is_over() {
            return Ok(None);
        }
        if self.requests.len() > 1 {
            match hold_all(&self.core, &self.requests).await? {
                AllAtOnce::Held(holds) => {
                    let parts = holds.into_iter().zip(&self.requests);
                    return Ok(Some(
                        parts
                            .map(|(hold, request)| self.part(hold, request))
                            .collect(),
                    ));
                }
                AllAtOnce::Busy => return Ok(None),
                AllAtOnce::OneByOne => {}
            }
        }
        let mut parts = Parts::default();
        for request in &self.requests {
            let hold = if end.is_over() {
                Ok(None)
            } else {
                acquire(&self.core, request).await
            };
            match hold {
                Ok(Some(hold)) => parts.0.push(self.part(hold, request)),
                busy => {
                    parts.let_go().await;
                    return busy.map(|_| None);
                }
            }
        }
        Ok(Some(std::mem::take(&mut parts.0)))
    }

    /// Waits until it holds all of them.
    pub(crate) async fn hold(&self, end: End) -> Result<Vec<Part>> {
        if self.requests.len() > 1 {
            match self.try_hold(end).await {
                Ok(Some(parts)) => return Ok(parts),
                Ok(None) => {}
                // One after the other it is tried again.
                Err(error) if error.is_retryable() && !end.is_over() => {}
                Err(error) => return Err(error),
            }
        }
        let mut parts = Parts::default();
        let deadline = end.on(self.core.clock);
        for request in &self.requests {
            let patient = Request {
                patience: Patience::Until(deadline),
                ..request.clone()
            };
            match acquire(&self.core, &patient).await {
                Ok(hold) => parts.0.extend(hold.map(|hold| self.part(hold, request))),
                Err(error) => {
                    parts.let_go().await;
                    return Err(error);
                }
            }
        }
        Ok(std::mem::take(&mut parts.0))
    }

    fn part(&self, hold: Arc<Hold>, request: &Request) -> Part {
        Part::new(Arc::clone(&self.core), hold, request.ttl, None)
    }
}

/// What is held so far. Lets go of the last first.
#[derive(Default)]
pub(crate) struct Parts(Vec<Part>);

impl Parts {
    pub(crate) fn add(&mut self, more: Vec<Part>) {
        self.0.extend(more);
    }

    /// In the order of their names, which is that of the guard.
    pub(crate) fn sorted(mut self) -> Vec<Part> {
        let mut parts = std::mem::take(&mut self.0);
        parts.sort_by(|a, b| a.hold.id.resource().cmp(b.hold.id.resource()));
        parts
    }

    /// Lets go of all and waits until that is done, though no longer than for one call: who is
    /// told that nothing is held should find it so.
    pub(crate) async fn let_go(mut self) {
        let Some(last) = self.0.last() else {
            return;
        };
        let limit = last.core.options.call_timeout;
        let all = async {
            while let Some(part) = self.0.pop() {
                // What is left after an error is released in the background.
                if part.unlock().await.is_err() {
                    break;
                }
            }
        };
        within(limit, all).await;
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        while self.0.pop().is_some() {}
    }
}
