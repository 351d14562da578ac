//! One request for several claims.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::acquire::{Request, keep};
use crate::core::Core;
use crate::hold::Hold;
use crate::undo::Undo;
use crate::{Claim, ErrorKind, HoldId, Result, Together};

/// What became of it.
pub(crate) enum AllAtOnce {
    /// All are held, in the order of the requests.
    Held(Vec<Arc<Hold>>),
    /// At least one was not free.
    Busy,
    /// The backend takes one at a time.
    OneByOne,
}

/// Holds everything, or nothing, by one call of the backend. Nobody waits.
///
/// If the caller drops the future, the request is finished on the runtime, and whatever it brought
/// is released.
pub(crate) async fn hold_all(core: &Arc<Core>, requests: &[Request]) -> Result<AllAtOnce> {
    // First the token, then the look: a close in between waits until all is kept or undone.
    let _open = core.under_way();
    core.check_open(requests.len())?;
    let claims: Vec<Claim> = requests
        .iter()
        .map(|request| Claim {
            wait: false,
            ..request.claim()
        })
        .collect();
    let ids: Vec<HoldId> = claims.iter().map(Claim::id).collect();
    let mut undo: Vec<Undo> = requests
        .iter()
        .zip(&ids)
        .map(|(request, id)| Undo::new(core, id.clone(), request.ttl))
        .collect();
    let under_way = UnderWay::new(core, claims);
    // From here on whatever happens is undone, unless it is known that nothing has happened.
    let outcome = core.bounded(under_way.with(&mut undo)).await?;
    match outcome {
        Together::Held(grants) if grants.len() == requests.len() => {
            let mut holds = Vec::with_capacity(grants.len());
            for ((request, id), grant) in requests.iter().zip(&ids).zip(grants) {
                // What is not kept is undone, and so are the others.
                match keep(core, request, id, grant)? {
                    Some(hold) => holds.push(hold),
                    None => return Ok(AllAtOnce::Busy),
                }
            }
            undo.iter_mut().for_each(Undo::disarm);
            Ok(AllAtOnce::Held(holds))
        }
        Together::Held(grants) => {
            let message = format!("{} grants for {} claims", grants.len(), requests.len());
            Err(core.error(ErrorKind::Unexpected, message))
        }
        Together::Busy => {
            undo.iter_mut().for_each(Undo::disarm);
            Ok(AllAtOnce::Busy)
        }
        Together::OneByOne => {
            undo.iter_mut().for_each(Undo::disarm);
            Ok(AllAtOnce::OneByOne)
        }
    }
}

type Call = Pin<Box<dyn Future<Output = Result<Together>> + Send>>;

/// The call, which is never dropped half-way.
struct UnderWay<'a> {
    core: &'a Arc<Core>,
    call: Option<Call>,
    undo: Option<&'a mut Vec<Undo>>,
    /// Keeps the locker from closing under the request.
    _open: TaskTrackerToken,
}

impl<'a> UnderWay<'a> {
    fn new(core: &'a Arc<Core>, claims: Vec<Claim>) -> Self {
        let open = core.under_way();
        let backend = Arc::clone(&core.backend);
        Self {
            core,
            call: Some(Box::pin(async move { backend.attempt_all(&claims).await })),
            undo: None,
            _open: open,
        }
    }

    fn with(mut self, undo: &'a mut Vec<Undo>) -> Self {
        self.undo = Some(undo);
        self
    }
}

impl Future for UnderWay<'_> {
    type Output = Result<Together>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(call) = &mut self.call else {
            return Poll::Pending;
        };
        let Poll::Ready(outcome) = call.as_mut().poll(cx) else {
            return Poll::Pending;
        };
        self.call = None;
        Poll::Ready(outcome)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let Some(call) = self.call.take() else {
            return;
        };
        // Released only after the call has ended: a release must not overtake it.
        let undo = self.undo.take().map(std::mem::take).unwrap_or_default();
        self.core.hand_over(async move {
            drop(call.await);
            drop(undo);
        });
    }
}
