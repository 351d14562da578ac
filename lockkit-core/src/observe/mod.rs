//! What a locker tells its operator: numbers through `metrics`, spans and events through `tracing`.
//!
//! Everything that is told goes through here, so that names and labels are the same everywhere.
//! Without the features all of it is empty, and costs neither time nor memory.

#[cfg(feature = "metrics")]
mod numbers;
#[cfg(feature = "tracing")]
mod records;

use std::time::Duration;

use crate::acquire::Request;
use crate::hold::LossReason;
use crate::{Clock, ErrorKind, HoldId, Label, Released, Resource, Result, Snapshot};

/// Tells what one locker does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observer {
    #[cfg(any(feature = "metrics", feature = "tracing"))]
    backend: &'static str,
    /// Whether the names of locks are labels.
    #[cfg(feature = "metrics")]
    names: bool,
}

/// Since when something has been going on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Since {
    #[cfg(any(feature = "metrics", feature = "tracing"))]
    start: crate::Instant,
}

/// What [`Load`](crate::watchdog) counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    Holds,
    Waiters,
}

/// How a batch of renewals was answered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Renewals {
    pub(crate) renewed: u64,
    pub(crate) gone: u64,
    pub(crate) unknown: u64,
}

impl Since {
    pub(crate) fn now(clock: Clock) -> Self {
        #[cfg(not(any(feature = "metrics", feature = "tracing")))]
        let _ = clock;
        Self {
            #[cfg(any(feature = "metrics", feature = "tracing"))]
            start: clock.now(),
        }
    }

    #[cfg(any(feature = "metrics", feature = "tracing"))]
    fn elapsed(self, clock: Clock) -> Duration {
        clock.now().saturating_duration_since(self.start)
    }

    #[cfg(not(any(feature = "metrics", feature = "tracing")))]
    #[allow(
        clippy::unused_self,
        reason = "the same call with and without the features"
    )]
    const fn elapsed(self, _: Clock) -> Duration {
        Duration::ZERO
    }
}

/// Calls the same function of both, where they are there.
macro_rules! tell {
    ($name:ident($($argument:expr),*)) => {{
        #[cfg(feature = "metrics")]
        numbers::$name($($argument),*);
        #[cfg(feature = "tracing")]
        records::$name($($argument),*);
        #[cfg(not(any(feature = "metrics", feature = "tracing")))]
        let _ = ($($argument),*);
    }};
}

impl Observer {
    pub(crate) fn new(backend: &'static str, names: bool) -> Self {
        #[cfg(not(any(feature = "metrics", feature = "tracing")))]
        let _ = backend;
        #[cfg(not(feature = "metrics"))]
        let _ = names;
        #[cfg(feature = "metrics")]
        numbers::describe();
        Self {
            #[cfg(any(feature = "metrics", feature = "tracing"))]
            backend,
            #[cfg(feature = "metrics")]
            names,
        }
    }

    /// Runs an acquire call and tells its outcome.
    pub(crate) async fn acquire<T>(
        self,
        clock: Clock,
        request: &Request,
        call: impl Future<Output = Result<Option<T>>>,
    ) -> Result<Option<T>> {
        let since = Since::now(clock);
        #[cfg(feature = "tracing")]
        let call = tracing::Instrument::instrument(call, records::acquire_span(self, request));
        let outcome = call.await;
        let word = match &outcome {
            Ok(Some(_)) => "acquired",
            Ok(None) => "busy",
            Err(error) => error.kind().as_str(),
        };
        let waited = since.elapsed(clock);
        tell!(acquired(self, &request.resource, word, waited));
        outcome
    }

    /// A claim found somebody before it, for the first time.
    pub(crate) fn contended(self, resource: &Resource) {
        tell!(contended(self, resource));
    }

    /// A hold has ended, by a loss if there is a reason.
    pub(crate) fn ended(self, id: &HoldId, since: Since, clock: Clock, lost: Option<LossReason>) {
        let held = since.elapsed(clock);
        tell!(ended(self, id, held, lost));
    }

    pub(crate) fn renewed(self, renewals: Renewals) {
        tell!(renewed(self, renewals));
    }

    /// A release was answered, or was not.
    pub(crate) fn released(self, outcome: Result<Released, ErrorKind>) {
        let word = match outcome {
            Ok(Released::Done) => "done",
            Ok(Released::NotHeld) => "not held",
            Err(kind) => kind.as_str(),
        };
        tell!(released(self, word));
    }

    /// One more, or one fewer.
    pub(crate) fn counted(self, what: Counted, change: i8) {
        tell!(counted(self, what, change));
    }

    /// Holders were asked to let go.
    pub(crate) fn asked(self, resource: &Resource, by: &Label, holders: usize) {
        tell!(asked(self, resource, by, holders));
    }

    /// Whether an eviction is worth a look at the holder first.
    #[allow(
        clippy::unused_self,
        reason = "the same call with and without the feature"
    )]
    pub(crate) fn audits(self) -> bool {
        #[cfg(feature = "tracing")]
        return records::audits();
        #[cfg(not(feature = "tracing"))]
        false
    }

    /// An operator took a hold away, or tried to.
    pub(crate) fn evicted(
        self,
        id: &HoldId,
        by: &Label,
        before: Option<&Snapshot>,
        outcome: &Result<Released>,
    ) {
        let word = match outcome {
            Ok(Released::Done) => "done",
            Ok(Released::NotHeld) => "not held",
            Err(error) => error.kind().as_str(),
        };
        tell!(evicted(self, id, by, before, word));
    }
}
