//! Waiting for a lock: one absolute deadline, subscribe before trying, a timer beside every wait.

use std::sync::Arc;
use std::time::Duration;

use crate::core::Core;
use crate::hold::Hold;
use crate::latch::not_open;
use crate::standing::Standing;
use crate::watchdog::Watched;
use crate::{
    Attempt, AttemptId, Claim, Error, ErrorKind, Grant, HoldId, Instant, Label, Mode, Order,
    Primitive, Resource, Result, valid_until,
};

/// What to acquire and how long to wait for it. Validated.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) resource: Resource,
    pub(crate) mode: Mode,
    pub(crate) order: Order,
    pub(crate) ttl: Duration,
    pub(crate) label: Label,
    pub(crate) patience: Patience,
    /// Whether the watchdog renews the hold.
    pub(crate) renewed: bool,
}

impl Request {
    /// A new claim for it.
    pub(crate) fn claim(&self) -> Claim {
        Claim {
            resource: self.resource.clone(),
            mode: self.mode,
            order: self.order,
            ttl: self.ttl,
            attempt: AttemptId::random(),
            label: self.label.clone(),
            wait: matches!(self.patience, Patience::Until(_)),
        }
    }
}

/// How long to wait.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patience {
    /// One attempt; busy is an answer.
    None,
    /// Until this moment; `None` is for ever.
    Until(Option<Instant>),
}

/// How often a grant may come too late to be of use before that is an error: it does when this
/// process was stopped for longer than a lease while it waited.
const LATE_GRANTS: usize = 3;

/// The shortest and the longest time between two attempts that nothing else prompted.
const RECHECK: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(30));

/// Acquires, or says `None` if somebody else holds it and there is no patience.
///
/// Dropping the future at any point leaves nothing behind; [`Standing`] sees to it.
pub(crate) async fn acquire(core: &Arc<Core>, request: &Request) -> Result<Option<Arc<Hold>>> {
    let call = hold(core, request);
    core.observer.acquire(core.clock, request, call).await
}

async fn hold(core: &Arc<Core>, request: &Request) -> Result<Option<Arc<Hold>>> {
    for _ in 0..LATE_GRANTS {
        core.check_open(1)?;
        let mut standing = Standing::new(core, request.claim())?;
        let Some(grant) = wait_for(core, request, &mut standing).await? else {
            // Without patience a busy attempt leaves no trace.
            standing.settle();
            return Ok(None);
        };
        // If it cannot be kept, dropping the claim releases it.
        if let Some(hold) = keep(core, request, standing.id(), grant)? {
            standing.settle();
            return Ok(Some(hold));
        }
    }
    let message = "every grant came after its lease had run out; ask for a longer lease";
    Err(core
        .error(ErrorKind::Unavailable, message)
        .with("ttl", format!("{:?}", request.ttl)))
}

/// Waits at a latch until it is open; `false` if it is not and there is no patience.
///
/// A claim like any other, except that it passes and holds nothing.
pub(crate) async fn pass(core: &Arc<Core>, request: &Request) -> Result<bool> {
    let call = async {
        core.check_open(1)?;
        let mut standing = Standing::new(core, request.claim())?;
        let passed = wait_for(core, request, &mut standing).await?;
        // If it has stood in line, dropping it releases the place.
        if !standing.has_stood() {
            standing.settle();
        }
        Ok(passed)
    };
    let passed = core.observer.acquire(core.clock, request, call).await?;
    Ok(passed.is_some())
}

/// Turns a grant into a hold; `None` if it cannot be believed any more.
pub(crate) fn keep(
    core: &Core,
    request: &Request,
    id: &HoldId,
    grant: Grant,
) -> Result<Option<Arc<Hold>>> {
    if core.clock.now() >= valid_until(grant.sent_at, grant.ttl) {
        return Ok(None);
    }
    let hold = Arc::new(Hold::new(
        id.clone(),
        request.mode,
        core.clock,
        core.observer,
        grant,
    ));
    match core.watchdog.watch_hold(&hold, grant, request.renewed) {
        Watched::Yes => Ok(Some(hold)),
        Watched::Gone => Ok(None),
        Watched::Closed => Err(core.closed_error()),
    }
}

async fn wait_for(
    core: &Arc<Core>,
    request: &Request,
    standing: &mut Standing<'_>,
) -> Result<Option<Grant>> {
    let mut outage = Outage::default();
    let mut contended = false;
    let mut limit = first_limit(core, request);
    loop {
        let outcome = match core.within(limit, standing.attempt()).await {
            Some(outcome) => outcome,
            None if limit < core.options.call_timeout => return Err(outage.or(core, request)),
            None => return Err(core.no_answer(limit)),
        };
        let pause = match outcome {
            Ok(Attempt::Held(grant)) => return Ok(Some(grant)),
            Ok(Attempt::Busy { recheck_after }) => {
                outage = Outage::default();
                if !std::mem::replace(&mut contended, true) {
                    core.observer.contended(&request.resource);
                }
                recheck_after
                    .unwrap_or(RECHECK.1)
                    .clamp(RECHECK.0, RECHECK.1)
            }
            Err(error) if error.is_retryable() => outage.pause_or(core, request, error)?,
            Err(error) => return Err(error.on(core.backend.descriptor().driver)),
        };
        if matches!(request.patience, Patience::None) {
            return Ok(None);
        }
        let news = standing.rest().map(Arc::clone);
        let news = async {
            match &news {
                Some(place) => place.news.notified().await,
                None => std::future::pending().await,
            }
        };
        let retry_at = core.clock.now() + jittered(pause);
        tokio::select! {
            biased;
            () = core.closed.cancelled() => return Err(core.closed_error()),
            () = news => {}
            () = standing.changed(), if outage.is_over() => {}
            () = sleep_until(core, request, retry_at) => {}
        }
        limit = next_limit(core, request).ok_or_else(|| outage.or(core, request))?;
    }
}

/// However little time there is, it is enough for one attempt on a backend that is near.
pub(crate) const LEAST_LIMIT: Duration = Duration::from_millis(50);

/// How long the first attempt may take.
fn first_limit(core: &Core, request: &Request) -> Duration {
    let limit = next_limit(core, request).unwrap_or_default();
    limit.max(LEAST_LIMIT.min(core.options.call_timeout))
}

/// How long another attempt may take; `None` if there is no time left.
fn next_limit(core: &Core, request: &Request) -> Option<Duration> {
    let limit = core.options.call_timeout;
    match request.patience {
        Patience::Until(Some(deadline)) => {
            let left = deadline.saturating_duration_since(core.clock.now());
            (!left.is_zero()).then(|| left.min(limit))
        }
        Patience::None | Patience::Until(None) => Some(limit),
    }
}

/// Sleeps until it is time to try again, or until patience ends.
async fn sleep_until(core: &Core, request: &Request, retry_at: Instant) {
    let until = match request.patience {
        Patience::Until(Some(deadline)) => retry_at.min(deadline),
        Patience::None | Patience::Until(None) => retry_at,
    };
    tokio::time::sleep(until.saturating_duration_since(core.clock.now())).await;
}

/// The longest time by which a recheck is put off, because a dead holder's lock is free by then.
const LONGEST_JITTER: Duration = Duration::from_millis(50);

/// A little later, so that those who wait for one lease do not try in one instant.
fn jittered(pause: Duration) -> Duration {
    let most = (pause / 10).min(LONGEST_JITTER);
    pause + most.mul_f64(rand::random_range(0.0..1.0)) + Duration::from_millis(5)
}

/// A series of attempts that the backend did not answer.
#[derive(Debug, Default)]
struct Outage {
    since: Option<Instant>,
    pause: Duration,
    last: Option<Error>,
}

impl Outage {
    const FIRST_PAUSE: Duration = Duration::from_millis(20);
    const LONGEST_PAUSE: Duration = Duration::from_secs(1);

    const fn is_over(&self) -> bool {
        self.since.is_none()
    }

    /// How long to pause before the next attempt. Gives the error back where there is no patience,
    /// and, for a claim without a deadline, once the backend has been silent for a lease or a
    /// call's time, whichever is longer: nobody should wait for ever for a service that is not
    /// there.
    fn pause_or(&mut self, core: &Core, request: &Request, error: Error) -> Result<Duration> {
        let now = core.clock.now();
        let since = *self.since.get_or_insert(now);
        let silent = now.saturating_duration_since(since);
        let gives_up = match request.patience {
            Patience::None => true,
            Patience::Until(Some(_)) => false,
            Patience::Until(None) => silent >= request.ttl.max(core.options.call_timeout),
        };
        if gives_up {
            return Err(error.on(core.backend.descriptor().driver));
        }
        self.last = Some(error);
        self.pause = (self.pause * 2).clamp(Self::FIRST_PAUSE, Self::LONGEST_PAUSE);
        Ok(self.pause)
    }

    /// Why the time ran out: the outage, if there is one, or else another holder.
    fn or(&mut self, core: &Core, request: &Request) -> Error {
        match self.last.take() {
            Some(error) => error.on(core.backend.descriptor().driver),
            None if request.resource.primitive() == Primitive::Latch => {
                not_open(core, request.resource.name())
            }
            None => core
                .error(
                    ErrorKind::Timeout,
                    "somebody else held the lock all the time",
                )
                .with("name", request.resource.name()),
        }
    }
}
