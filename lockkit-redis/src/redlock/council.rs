//! All nodes together.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use foldhash::HashSet;
use lockkit_core::{AttemptId, Error, ErrorKind, Result};
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use super::ballot::majority;
use super::descriptor::DRIVER;
use super::voter::Voter;

/// The nodes, and what is under way to them.
#[derive(Clone, Debug)]
pub(crate) struct Council {
    pub(crate) voters: Arc<[Arc<dyn Voter>]>,
    /// What goes on although its caller was answered, or is gone: messages to the slower nodes, and
    /// the cleaning up of rounds that failed.
    pub(crate) errands: TaskTracker,
    /// How long it takes to hear from a majority, in microseconds; 0 if not known yet.
    latency: Arc<AtomicU64>,
    /// What this process holds: only that is given back to nodes that lack it.
    held: Arc<Mutex<HashSet<AttemptId>>>,
}

impl Council {
    pub(crate) fn new(voters: Vec<Arc<dyn Voter>>) -> Self {
        Self {
            voters: voters.into(),
            errands: TaskTracker::new(),
            latency: Arc::default(),
            held: Arc::default(),
        }
    }

    pub(crate) fn majority(&self) -> usize {
        majority(self.voters.len())
    }

    /// Asks every node the same; answers come as they are given. Each question is asked to its end,
    /// whether or not somebody still listens.
    pub(crate) fn ask<T, F>(
        &self,
        question: impl Fn(Arc<dyn Voter>) -> F,
    ) -> mpsc::UnboundedReceiver<(usize, Result<T>)>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let (tell, answers) = mpsc::unbounded_channel();
        for (node, voter) in self.voters.iter().enumerate() {
            let (answer, tell) = (question(Arc::clone(voter)), tell.clone());
            let voter = Arc::clone(voter);
            self.errands.spawn(async move {
                let answer = answer.await.map_err(|error| voter.named(error));
                // Nobody may listen any more.
                let _ = tell.send((node, answer));
            });
        }
        answers
    }

    pub(crate) fn holds(&self, attempt: AttemptId) -> bool {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.contains(&attempt)
    }

    /// Notes that an attempt is held, or is about to be let go.
    pub(crate) fn note(&self, attempt: AttemptId, is_held: bool) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if is_held {
            held.insert(attempt);
        } else {
            held.remove(&attempt);
        }
    }

    /// How long a majority takes, as far as is known.
    pub(crate) fn latency(&self) -> Duration {
        Duration::from_micros(self.latency.load(Ordering::Relaxed))
    }

    /// Takes another measurement into account.
    pub(crate) fn measured(&self, took: Duration) {
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let before = self.latency.load(Ordering::Relaxed);
        let now = if before == 0 {
            took
        } else {
            (before.saturating_mul(7).saturating_add(took)) / 8
        };
        self.latency.store(now.max(1), Ordering::Relaxed);
    }

    /// Why no majority came about, by what the nodes said.
    pub(crate) fn absent(&self, errors: Vec<Error>) -> Error {
        let absent = errors.len();
        let mut errors = errors.into_iter();
        let Some(first) = errors.next() else {
            return Error::new(ErrorKind::Unavailable, "no server was heard").on(DRIVER);
        };
        // If all say the same it is not about reaching them.
        let kind = if errors.all(|error| error.kind() == first.kind()) {
            first.kind()
        } else {
            ErrorKind::Unavailable
        };
        let message = "too few of the servers can vote; a majority has to be up";
        Error::new(kind, message)
            .on(DRIVER)
            .with("absent", format!("{absent} of {}", self.voters.len()))
            .because(first)
    }
}
