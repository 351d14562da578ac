//! One release on its way, with somebody waiting for its answer.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::core::Core;
use crate::undo::Undo;
use crate::{Error, ErrorKind, HoldId, Released, Result};

type Request = Pin<Box<dyn Future<Output = Vec<Result<Released>>> + Send>>;

/// Runs in the caller's future. If the caller drops it, the rest runs on the runtime; if the
/// service does not answer, the watchdog repeats the release.
pub(crate) struct Releasing<'a> {
    core: &'a Arc<Core>,
    id: HoldId,
    ttl: Duration,
    request: Option<Request>,
    /// Keeps the locker from closing under the request.
    _open: TaskTrackerToken,
}

impl<'a> Releasing<'a> {
    pub(crate) fn new(core: &'a Arc<Core>, id: HoldId, ttl: Duration) -> Self {
        let open = core.under_way();
        let (backend, ids) = (Arc::clone(&core.backend), [id.clone()]);
        let request: Request = Box::pin(async move { backend.release(&ids).await });
        Self {
            core,
            id,
            ttl,
            request: Some(request),
            _open: open,
        }
    }
}

impl Future for Releasing<'_> {
    type Output = Result<Released>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(request) = &mut self.request else {
            return Poll::Pending;
        };
        let Poll::Ready(answers) = request.as_mut().poll(cx) else {
            return Poll::Pending;
        };
        self.request = None;
        let answer = only(answers);
        let told = answer.as_ref().copied().map_err(Error::kind);
        self.core.observer.released(told);
        if answer.is_err() {
            self.core.watchdog.release_later(self.id.clone(), self.ttl);
        }
        Poll::Ready(answer)
    }
}

impl Drop for Releasing<'_> {
    fn drop(&mut self) {
        let Some(mut request) = self.request.take() else {
            return;
        };
        let mut undo = Undo::new(self.core, self.id.clone(), self.ttl);
        let limit = self.core.options.call_timeout;
        self.core.hand_over(async move {
            match tokio::time::timeout(limit, &mut request).await {
                Ok(answers) => {
                    if only(answers).is_ok() {
                        undo.disarm();
                    }
                }
                // It is repeated, but not cut off: it may still arrive.
                Err(_) => {
                    undo.release();
                    drop(undo);
                    request.await;
                }
            }
        });
    }
}

fn only(answers: Vec<Result<Released>>) -> Result<Released> {
    answers.into_iter().next().unwrap_or_else(|| {
        let message = "the backend answered no release at all";
        Err(Error::new(ErrorKind::Unexpected, message))
    })
}
