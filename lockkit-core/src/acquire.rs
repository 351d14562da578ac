//! Waiting for a lock: one absolute deadline, subscribe before trying, a timer beside every wait.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use crate::core::Core;
use crate::hold::Hold;
use crate::standing::Standing;
use crate::within::within;
use crate::{
    Attempt, AttemptId, Claim, Error, ErrorKind, Grant, Instant, Label, Mode, Order, Resource,
    Result, valid_until,
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
    for _ in 0..LATE_GRANTS {
        core.check_open()?;
        let claim = Claim {
            resource: request.resource.clone(),
            mode: request.mode,
            order: request.order,
            ttl: request.ttl,
            attempt: AttemptId::random(),
            label: request.label.clone(),
            wait: matches!(request.patience, Patience::Until(_)),
        };
        let mut standing = Standing::new(core, claim)?;
        let Some(grant) = wait_for(core, request, &mut standing).await? else {
            // Without patience a busy attempt leaves no trace.
            standing.settle();
            return Ok(None);
        };
        if let Some(hold) = keep(core, request, standing, grant)? {
            return Ok(Some(hold));
        }
    }
    let message = "every grant came after its lease had run out; ask for a longer lease";
    Err(core
        .error(ErrorKind::Unavailable, message)
        .with("ttl", format!("{:?}", request.ttl)))
}

/// Turns a grant into a hold; `None` if it came too late to be believed.
fn keep(
    core: &Arc<Core>,
    request: &Request,
    standing: Standing<'_>,
    grant: Grant,
) -> Result<Option<Arc<Hold>>> {
    let until = valid_until(grant.sent_at, grant.ttl);
    if core.clock.now() >= until {
        return Ok(None); // Dropping the claim releases it.
    }
    let hold = Arc::new(Hold::new(
        standing.id().clone(),
        grant.fence,
        core.clock,
        until,
    ));
    if !core
        .watchdog
        .watch_hold(&hold, grant.sent_at, grant.ttl, request.renewed)
    {
        return Err(core.error(ErrorKind::Closed, "this locker was closed; connect again"));
    }
    standing.settle();
    Ok(Some(hold))
}

async fn wait_for(
    core: &Arc<Core>,
    request: &Request,
    standing: &mut Standing<'_>,
) -> Result<Option<Grant>> {
    let mut outage = Outage::default();
    let mut in_line: Option<Arc<Notify>> = None;
    loop {
        let limit = attempt_limit(core, request)?;
        let outcome = match within(limit, standing.attempt()).await {
            Some(outcome) => outcome,
            None if limit < core.options.call_timeout => return Err(timed_out(core, request)),
            None => return Err(core.no_answer(limit)),
        };
        let pause = match outcome {
            Ok(Attempt::Held(grant)) => return Ok(Some(grant)),
            Ok(Attempt::Busy { recheck_after }) => {
                outage = Outage::default();
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
        let gone = in_line.get_or_insert_with(|| {
            let gone = Arc::new(Notify::new());
            core.watchdog.watch_place(standing.id(), request.ttl, &gone);
            gone
        });
        let retry_at = core.clock.now() + jittered(pause);
        tokio::select! {
            biased;
            () = core.closed.cancelled() => {
                return Err(core.error(ErrorKind::Closed, "this locker was closed while waiting"));
            }
            () = standing.changed(), if outage.is_over() => {}
            () = gone.notified() => {}
            () = sleep_until(core, request, retry_at) => {}
        }
    }
}

/// How long the next attempt may take.
fn attempt_limit(core: &Core, request: &Request) -> Result<Duration> {
    let limit = core.options.call_timeout;
    match request.patience {
        Patience::Until(Some(deadline)) => {
            match deadline.saturating_duration_since(core.clock.now()) {
                Duration::ZERO => Err(timed_out(core, request)),
                left => Ok(left.min(limit)),
            }
        }
        Patience::None | Patience::Until(None) => Ok(limit),
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

/// A little later, so that those who wait for one lease do not try in one instant.
fn jittered(pause: Duration) -> Duration {
    pause + pause.mul_f64(rand::random_range(0.0..0.1)) + Duration::from_millis(5)
}

fn timed_out(core: &Core, request: &Request) -> Error {
    core.error(
        ErrorKind::Timeout,
        "somebody else held the lock all the time",
    )
    .with("name", request.resource.name())
}

/// A series of attempts that the backend did not answer.
#[derive(Debug, Default)]
struct Outage {
    since: Option<Instant>,
    pause: Duration,
}

impl Outage {
    const FIRST_PAUSE: Duration = Duration::from_millis(20);
    const LONGEST_PAUSE: Duration = Duration::from_secs(1);

    const fn is_over(&self) -> bool {
        self.since.is_none()
    }

    /// How long to pause before the next attempt. Gives the error back where there is no patience,
    /// and once the backend has been silent for a lease or a call's time, whichever is longer: a
    /// claim without a deadline must not wait for ever for a service that is not there.
    fn pause_or(&mut self, core: &Core, request: &Request, error: Error) -> Result<Duration> {
        let now = core.clock.now();
        let since = *self.since.get_or_insert(now);
        let longest = request.ttl.max(core.options.call_timeout);
        let silent = now.saturating_duration_since(since);
        if matches!(request.patience, Patience::None) || silent >= longest {
            return Err(error.on(core.backend.descriptor().driver));
        }
        self.pause = (self.pause * 2).clamp(Self::FIRST_PAUSE, Self::LONGEST_PAUSE);
        Ok(self.pause)
    }
}
