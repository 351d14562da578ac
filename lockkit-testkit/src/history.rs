//! What happened: every hold with its times, from any number of tasks and processes.

use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use lockkit_core::{Clock, Fence, Guard, Instant};

use crate::{Failure, Violation, oracle};

/// One hold as its holder saw it, in times of one clock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Span {
    /// The name that was held.
    pub name: String,
    /// When it was asked for.
    pub invoked: Instant,
    /// When it was given: the begin of the believed interval.
    pub returned: Instant,
    /// The fencing token.
    pub fence: Fence,
    /// The end of the believed interval: the unlock was called, the loss was told, or the lease
    /// had run out, whichever came first.
    pub end: Instant,
}

impl Span {
    /// A hold of `name`, believed from `returned` to `end`.
    #[must_use]
    pub fn new(
        name: &str,
        invoked: Instant,
        returned: Instant,
        fence: Fence,
        end: Instant,
    ) -> Self {
        Self {
            name: name.into(),
            invoked,
            returned,
            fence,
            end,
        }
    }

    /// One word for a pipe, without the name.
    pub(crate) fn encode(&self) -> String {
        let [invoked, returned, end] =
            [self.invoked, self.returned, self.end].map(Instant::as_nanos);
        format!("{invoked}:{returned}:{}:{end}", self.fence)
    }

    pub(crate) fn decode(name: &str, word: &str) -> Result<Self, Failure> {
        let numbers: Vec<u64> = word
            .split(':')
            .map(u64::from_str)
            .collect::<Result<_, _>>()?;
        let &[invoked, returned, fence, end] = &numbers[..] else {
            return Err(Failure::new(format!("not a span: {word}")));
        };
        let [invoked, returned, end] = [invoked, returned, end].map(Instant::from_nanos);
        Ok(Self::new(name, invoked, returned, Fence::new(fence), end))
    }
}

/// A growing list of spans. Clones share it.
///
/// # Examples
///
/// ```
/// use lockkit_core::{Clock, Locker, Memory};
/// use lockkit_testkit::History;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> lockkit_core::Result<()> {
/// let locker = Locker::new(Memory::new())?;
/// let history = History::new(Clock::Tokio);
///
/// let asked = history.now();
/// let guard = locker.mutex("orders/42").lock().await?;
/// let open = history.held(asked);
/// // … the work …
/// history.ends(open, &guard);
/// guard.unlock().await?;
///
/// assert!(history.violations().is_empty());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct History {
    clock: Clock,
    spans: Arc<Mutex<Vec<Span>>>,
    fenced: bool,
}

/// The begin of a span.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Open {
    invoked: Instant,
    returned: Instant,
}

impl History {
    /// An empty history on the clock of the backend's leases.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            spans: Arc::default(),
            fenced: true,
        }
    }

    /// The same for a backend without fences, where only overlaps are violations.
    #[must_use]
    pub fn without_fences(self) -> Self {
        Self {
            fenced: false,
            ..self
        }
    }

    /// The present moment; read it before asking for a lock.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Notes that a lock was given, right after it was.
    pub fn held(&self, invoked: Instant) -> Open {
        Open {
            invoked,
            returned: self.now(),
        }
    }

    /// Notes the end of a hold, right before the guard is unlocked or dropped.
    pub fn ends(&self, open: Open, guard: &Guard) {
        let end = self.now().min(guard.valid_until()).max(open.returned);
        self.add(Span::new(
            guard.name().as_str(),
            open.invoked,
            open.returned,
            guard.fence(),
            end,
        ));
    }

    /// Adds a span from elsewhere.
    pub fn add(&self, span: Span) {
        self.spans
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(span);
    }

    /// The spans so far, in the order in which they ended.
    #[must_use]
    pub fn spans(&self) -> Vec<Span> {
        self.spans
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// What the [oracle](crate::violations) finds wrong with it.
    #[must_use]
    pub fn violations(&self) -> Vec<Violation> {
        let mut violations = oracle::violations(&self.spans());
        violations.retain(|violation| self.fenced || matches!(violation, Violation::Overlap(..)));
        violations
    }
}

impl History {
    /// Fails with everything that is wrong with it.
    ///
    /// # Errors
    ///
    /// If there is a violation.
    pub fn sound(&self) -> crate::Outcome {
        let violations = self.violations();
        let text: Vec<String> = violations.iter().map(ToString::to_string).collect();
        crate::failure::ensure!(violations.is_empty(), "{}", text.join("\n"));
        Ok(())
    }
}
