//! One release on its way, with somebody waiting for its answer.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::core::Core;
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
        let (backend, ids) = (Arc::clone(&core.backend), [id.clone()]);
        let request: Request = Box::pin(async move { backend.release(&ids).await });
        let open = core.under_way();
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
        if answer.is_err() {
            self.core.watchdog.release_later(self.id.clone(), self.ttl);
        }
        Poll::Ready(answer)
    }
}

impl Drop for Releasing<'_> {
    fn drop(&mut self) {
        if let Some(request) = self.request.take() {
            let core = Arc::clone(self.core);
            let (id, ttl) = (self.id.clone(), self.ttl);
            self.core.hand_over(async move {
                if only(request.await).is_err() {
                    core.watchdog.release_later(id, ttl);
                }
            });
        }
    }
}

fn only(answers: Vec<Result<Released>>) -> Result<Released> {
    answers.into_iter().next().unwrap_or_else(|| {
        Err(Error::new(
            ErrorKind::Unexpected,
            "the backend answered no release at all",
        ))
    })
}
