//! The poll-count sweep: drop an operation after n polls, for every n until it completes.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use lockkit_core::{DistributedLock, Snapshot};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use crate::Client;
use crate::failure::ensure;
use crate::{Failure, Fixture, Outcome};

/// A part of a round, ready to be awaited.
pub type Step<T = Outcome> = Pin<Box<dyn Future<Output = T> + Send>>;

/// An operation that takes more polls than this never ends.
const MOST_POLLS: usize = 200;
/// How long a poll may wait for the operation to ask for the next one.
const PAUSE: Duration = Duration::from_millis(5);

/// One run of the operation under test, set up anew for each n.
#[allow(missing_debug_implementations, reason = "futures have nothing to show")]
pub struct Round {
    operation: Step<()>,
    meanwhile: Option<(usize, Step)>,
    after: Option<Step>,
}

impl Round {
    /// A round that polls `operation`; what it returns is dropped.
    pub fn new<T>(operation: impl Future<Output = T> + Send + 'static) -> Self {
        let operation = Box::pin(async move {
            drop(operation.await);
        });
        Self {
            operation,
            meanwhile: None,
            after: None,
        }
    }

    /// Does `step` once the operation was polled `polls` times, whether that was its last poll or
    /// not. If it is dropped before, `step` is dropped right after it.
    #[must_use]
    pub fn meanwhile(
        mut self,
        polls: usize,
        step: impl Future<Output = Outcome> + Send + 'static,
    ) -> Self {
        self.meanwhile = Some((polls, Box::pin(step)));
        self
    }

    /// Does `step` once the operation was dropped or is done.
    #[must_use]
    pub fn after(mut self, step: impl Future<Output = Outcome> + Send + 'static) -> Self {
        self.after = Some(Box::pin(step));
        self
    }

    /// Polls the operation `polls` times, each when it asks to be polled or after a pause, and
    /// drops it. Tells whether it has completed.
    async fn drop_after(&mut self, polls: usize, manner: Manner) -> Outcome<bool> {
        let bell = Arc::new(Bell::default());
        let waker = Waker::from(Arc::clone(&bell));
        let mut done = false;
        for poll in 0..=polls {
            if let Some((_, step)) = self.meanwhile.take_if(|(at, _)| *at == poll) {
                step.await?;
            }
            if poll == polls || done {
                break;
            }
            if poll > 0 {
                bell.rung().await;
            }
            done = self
                .operation
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_ready();
        }
        if manner == Manner::OnceWoken && polls > 0 && !done {
            bell.rung().await;
        }
        self.operation = Box::pin(async {});
        // What it would have let go of is let go of now.
        self.meanwhile = None;
        Ok(done)
    }
}

/// When the operation is dropped after its last poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// At once, while whatever it asked for is on its way.
    AtOnce,
    /// When it was woken to take the answer, which it never sees.
    OnceWoken,
}

/// Wakes whoever counts the polls.
#[derive(Default)]
struct Bell(Notify);

impl Bell {
    async fn rung(&self) {
        let _ = timeout(PAUSE, self.0.notified()).await;
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }
}

/// Sweeps an operation on the mutex `name`, as [`sweep_of`] does.
///
/// # Errors
///
/// Those of [`sweep_of`].
pub async fn sweep<F>(fixture: &Fixture, name: &str, start: impl Fn() -> F + Send + Sync) -> Outcome
where
    F: Future<Output = Outcome<Round>> + Send,
{
    sweep_of(fixture, |other| other.mutex(name), start).await
}

/// Sweeps an operation on a lock: for n = 0, 1, 2, … it sets a round up, drops the operation after
/// n polls, and checks that another client can take `lock` and that nobody holds or waits for
/// anything afterwards. It ends when the operation completes.
///
/// Let `lock` be what meets every other hold: the writer, all permits at once, all names.
///
/// # Errors
///
/// What a round, or a check after one, complains about, with n.
pub async fn sweep_of<L, F>(
    fixture: &Fixture,
    lock: impl Fn(&Client) -> L + Send + Sync,
    start: impl Fn() -> F + Send + Sync,
) -> Outcome
where
    L: DistributedLock + Clone,
    F: Future<Output = Outcome<Round>> + Send,
{
    let other = fixture.client().await?;
    for polls in 0..=MOST_POLLS {
        let mut completed = true;
        for manner in [Manner::AtOnce, Manner::OnceWoken] {
            let round = async {
                let mut round = start().await?;
                completed &= round.drop_after(polls, manner).await?;
                if let Some(after) = round.after {
                    after.await?;
                }
                fixture.passes(&lock(&other)).await?;
                nothing_is_left(fixture, &other).await
            };
            round.await.map_err(|failure| {
                Failure::new(format!("dropped {manner:?} after {polls} polls: {failure}"))
            })?;
        }
        if completed {
            return Ok(());
        }
    }
    Err(Failure::new(format!(
        "the operation has not completed after {MOST_POLLS} polls"
    )))
}

/// A request that was on its way when its caller left may still arrive, and is undone after that:
/// so this may take a moment.
async fn nothing_is_left(fixture: &Fixture, other: &Client) -> Outcome {
    let end = Instant::now() + fixture.soon();
    loop {
        let list = other.list("").await?;
        if list.iter().all(Snapshot::is_idle) {
            return Ok(());
        }
        ensure!(Instant::now() < end, "something is left: {list:?}");
        sleep(Duration::from_millis(5)).await;
    }
}
