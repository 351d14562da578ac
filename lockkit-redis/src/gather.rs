//! Calls that are made at about the same time, joined into one.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lockkit_core::{Error, ErrorKind, Result};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::descriptor::DRIVER;
use crate::error::repeat;

/// How many calls go alone at a time, before others are gathered.
const ALONE: usize = 4;

/// The most that are joined: enough to share the cost of a script, few enough that the server, which
/// does one thing at a time, is done with them in a fraction of a millisecond.
const MOST: usize = 32;

/// A call that can be joined with others of its kind.
pub(crate) trait Joined: Sized + Send + 'static {
    /// What all calls share.
    type Context: Send + Sync + 'static;
    type Answer: Send + 'static;

    /// Where calls of this kind are gathered.
    fn gather(context: &Self::Context) -> &Gather<Self>;

    /// Makes several calls at once, and gives an answer for each, in order. An error is about the way
    /// to the server: it holds for all calls that would be made now.
    fn send(
        context: &Arc<Self::Context>,
        calls: Vec<Self>,
    ) -> impl Future<Output = Result<Vec<Self::Answer>>> + Send;
}

/// Sends calls one by one while there are few, and in batches while there are many: what is asked for
/// while enough calls are under way leaves together, by a task of its own, which sends the next batch
/// when the one before was answered. So gathering keeps nobody waiting for longer than a round
/// trip, nobody at all without load, and nobody depends on another caller being polled.
pub(crate) struct Gather<J: Joined> {
    /// Where the connections live, which outlive any caller's runtime.
    runtime: Handle,
    state: Mutex<State<J>>,
}

struct State<J: Joined> {
    alone: usize,
    is_draining: bool,
    gathered: VecDeque<Gathered<J>>,
}

/// A call, and who waits for its answer.
type Gathered<J> = (J, oneshot::Sender<Result<<J as Joined>::Answer>>);

impl<J: Joined> Gather<J> {
    /// Batches are sent on this runtime.
    pub(crate) const fn new(runtime: Handle) -> Self {
        Self {
            runtime,
            state: Mutex::new(State {
                alone: 0,
                is_draining: false,
                gathered: VecDeque::new(),
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State<J>> {
        // Nothing in here panics half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a call, alone or with others.
    ///
    /// If the future is dropped, the call may be made all the same.
    pub(crate) async fn call(context: &Arc<J::Context>, call: J) -> Result<J::Answer> {
        let gather = J::gather(context);
        let (answer, is_first) = match gather.way_of(call) {
            Way::Alone(call, _alone) => {
                let mut answers = J::send(context, vec![call]).await?;
                return answers.pop().ok_or_else(unanswered);
            }
            Way::Together { answer, is_first } => (answer, is_first),
        };
        if is_first {
            let drain = Drain::<J> {
                context: Arc::clone(context),
                is_over: false,
            };
            gather.runtime.spawn(drain.run());
        }
        answer.await.unwrap_or_else(|_| Err(unanswered()))
    }

    fn way_of(&self, call: J) -> Way<'_, J> {
        let mut state = self.state();
        if state.alone < ALONE {
            state.alone += 1;
            return Way::Alone(call, Alone(self));
        }
        let (sender, answer) = oneshot::channel();
        state.gathered.push_back((call, sender));
        let is_first = !std::mem::replace(&mut state.is_draining, true);
        Way::Together { answer, is_first }
    }
}

/// How a call is to be made.
enum Way<'a, J: Joined> {
    Alone(J, Alone<'a, J>),
    Together {
        answer: oneshot::Receiver<Result<J::Answer>>,
        /// Whether there is no task yet that sends it.
        is_first: bool,
    },
}

impl<J: Joined> fmt::Debug for Gather<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gather").finish_non_exhaustive()
    }
}

/// A call that goes alone.
struct Alone<'a, J: Joined>(&'a Gather<J>);

impl<J: Joined> Drop for Alone<'_, J> {
    fn drop(&mut self) {
        self.0.state().alone -= 1;
    }
}

/// The task that sends what was gathered, until there is nothing more.
struct Drain<J: Joined> {
    context: Arc<J::Context>,
    /// Whether it has come to its end; another one may be at work since.
    is_over: bool,
}

impl<J: Joined> Drain<J> {
    async fn run(mut self) {
        while let Some(batch) = self.batch() {
            let (calls, senders): (Vec<J>, Vec<_>) = batch.into_iter().unzip();
            // Who has gone away meanwhile does not want to know.
            match J::send(&self.context, calls).await {
                Ok(answers) => {
                    for (sender, answer) in senders.into_iter().zip(answers) {
                        let _ = sender.send(Ok(answer));
                    }
                }
                // What was gathered meanwhile would fare no better, one batch after the other.
                Err(error) => {
                    let gathered = std::mem::take(&mut J::gather(&self.context).state().gathered);
                    let others = gathered.into_iter().map(|(_, sender)| sender);
                    for sender in senders.into_iter().chain(others) {
                        let _ = sender.send(Err(repeat(&error)));
                    }
                }
            }
        }
    }

    /// The next batch, without those that nobody waits for any more; `None` if this is over.
    fn batch(&mut self) -> Option<Vec<Gathered<J>>> {
        let mut state = J::gather(&self.context).state();
        let mut batch = Vec::new();
        while batch.len() < MOST
            && let Some(next) = state.gathered.pop_front()
        {
            if !next.1.is_closed() {
                batch.push(next);
            }
        }
        self.is_over = batch.is_empty();
        state.is_draining = !self.is_over;
        state.is_draining.then_some(batch)
    }
}

impl<J: Joined> Drop for Drain<J> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        // Its runtime ends. Those who wait learn of that, once nothing is locked any more.
        let gathered = {
            let mut state = J::gather(&self.context).state();
            state.is_draining = false;
            std::mem::take(&mut state.gathered)
        };
        drop(gathered);
    }
}

fn unanswered() -> Error {
    let message = "the runtime on which this was to be sent has ended";
    Error::new(ErrorKind::Unavailable, message).on(DRIVER)
}

#[cfg(test)]
#[path = "gather_tests.rs"]
mod tests;
