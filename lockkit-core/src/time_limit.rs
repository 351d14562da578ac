//! A time limit without a timer for each call.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::{Handle, Id};
use tokio::time::{Instant, Sleep};

/// Bounds calls that are nearly always answered long before.
///
/// Setting a timer may wake the thread that waits for the next one, once for each call. So timers are
/// kept: one that was set for a call serves the next ones as well, as long as seven eighths of the limit
/// are left.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use std::time::Duration;
/// use lockkit_core::TimeLimit;
///
/// let limit = TimeLimit::new(Duration::from_millis(20));
/// assert_eq!(limit.bound(async { 1 }).await, Some(1));
/// assert_eq!(limit.bound(std::future::pending::<()>()).await, None);
/// # }
/// ```
pub struct TimeLimit {
    limit: Duration,
    spare: Mutex<Vec<Timer>>,
}

/// A timer that nobody waits for at the moment.
struct Timer {
    /// Where it was made: it is of no use anywhere else.
    runtime: Id,
    sleep: Pin<Box<Sleep>>,
}

/// How many timers are kept.
const MOST: usize = 256;

impl TimeLimit {
    /// Calls are given up after `limit` at the latest, and an eighth of it earlier at the earliest.
    #[must_use]
    pub const fn new(limit: Duration) -> Self {
        Self {
            limit,
            spare: Mutex::new(Vec::new()),
        }
    }

    /// The limit.
    #[must_use]
    pub const fn get(&self) -> Duration {
        self.limit
    }

    /// Runs `call`; `None` if it took too long. A call that is done at its first poll needs no
    /// timer at all.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime whose timers are enabled, unless the call is done at once.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the call.
    pub async fn bound<T>(&self, call: impl Future<Output = T>) -> Option<T> {
        let mut call = pin!(call);
        let mut lent = None;
        poll_fn(|cx| {
            if let Poll::Ready(done) = call.as_mut().poll(cx) {
                return Poll::Ready(Some(done));
            }
            let lent = lent.get_or_insert_with(|| self.lend());
            match &mut lent.timer {
                Some(timer) => timer.sleep.as_mut().poll(cx).map(|()| None),
                None => Poll::Pending, // It is there until it is dropped.
            }
        })
        .await
    }

    fn lend(&self) -> Lent<'_> {
        let runtime = Handle::current().id();
        let now = Instant::now();
        let (soonest, latest) = (after(now, self.limit / 8 * 7), after(now, self.limit));
        let kept = self.spare().pop();
        let timer = match kept.filter(|timer| timer.runtime == runtime) {
            Some(mut timer) => {
                if timer.sleep.deadline() < soonest {
                    timer.sleep.as_mut().reset(latest);
                }
                timer
            }
            None => Timer {
                runtime,
                sleep: Box::pin(tokio::time::sleep_until(latest)),
            },
        };
        Lent {
            limit: self,
            timer: Some(timer),
        }
    }

    fn spare(&self) -> MutexGuard<'_, Vec<Timer>> {
        // A list is whole at any moment.
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for TimeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TimeLimit").field(&self.limit).finish()
    }
}

/// A timer in use; given back when dropped.
struct Lent<'a> {
    limit: &'a TimeLimit,
    timer: Option<Timer>,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let mut spare = self.limit.spare();
        if spare.len() < MOST {
            spare.extend(self.timer.take());
        }
    }
}

/// "For ever" is a legal limit; a year is long enough for a call.
fn after(start: Instant, time: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 86_400);
    start + time.min(YEAR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;

    const LIMIT: Duration = Duration::from_secs(8);

    #[tokio::test(start_paused = true)]
    async fn every_call_has_its_time_however_old_the_timer_is() {
        let limit = TimeLimit::new(LIMIT);
        for pause in [0, 100, 700, 900, 7_000, 20_000] {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            let yields = async {
                tokio::task::yield_now().await;
                1
            };
            assert_eq!(limit.bound(yields).await, Some(1));
            let before = Instant::now();
            assert_eq!(limit.bound(pending::<()>()).await, None);
            let took = before.elapsed();
            assert!(
                took >= LIMIT / 8 * 7 && took <= LIMIT + Duration::from_millis(1),
                "{took:?}"
            );
        }
        assert_eq!(limit.spare().len(), 1, "one timer serves all");
    }

    #[test]
    fn a_timer_is_not_used_in_another_runtime() {
        let limit = TimeLimit::new(Duration::from_millis(10));
        for _ in 0..2 {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .build()
                .unwrap();
            assert_eq!(runtime.block_on(limit.bound(pending::<()>())), None);
        }
    }
}
