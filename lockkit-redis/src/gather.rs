//! Calls that are made at about the same time, joined into one.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// How many calls are under way at a time before others are gathered.
const UNDER_WAY: usize = 4;

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

    /// Makes several calls at once, and gives an answer for each, in order.
    fn send(
        context: &Arc<Self::Context>,
        calls: Vec<Self>,
    ) -> impl Future<Output = Vec<Self::Answer>> + Send;
}

/// Sends calls one by one while there are few, and in batches while there are many: what is asked for
/// while enough calls are under way leaves together as soon as one of them is answered. So
/// gathering keeps nobody waiting for longer than a round trip, and nobody at all without load.
pub(crate) struct Gather<J: Joined>(Mutex<State<J>>);

struct State<J: Joined> {
    under_way: usize,
    gathered: VecDeque<(J, oneshot::Sender<J::Answer>)>,
}

type Batch<J> = Vec<(J, oneshot::Sender<<J as Joined>::Answer>)>;

impl<J: Joined> Gather<J> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(State {
            under_way: 0,
            gathered: VecDeque::new(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State<J>> {
        // Nothing in here panics half-way through a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a call, alone or with others; `None` if it got no answer, because its runtime ends.
    ///
    /// If the future is dropped, the call may be made all the same.
    pub(crate) async fn call(context: &Arc<J::Context>, call: J) -> Option<J::Answer> {
        let answer = {
            let mut state = J::gather(context).state();
            if state.under_way < UNDER_WAY {
                state.under_way += 1;
                Err(call)
            } else {
                let (sender, answer) = oneshot::channel();
                state.gathered.push_back((call, sender));
                Ok(answer)
            }
        };
        match answer {
            Ok(answer) => answer.await.ok(),
            Err(call) => {
                let _turn = Turn::<J>(Arc::clone(context));
                J::send(context, vec![call]).await.pop()
            }
        }
    }

    /// Sends what was gathered, until there is nothing more.
    async fn drain(turn: Turn<J>, mut batch: Batch<J>) {
        while !batch.is_empty() {
            let (calls, senders): (Vec<J>, Vec<_>) = batch.into_iter().unzip();
            let answers = J::send(&turn.0, calls).await;
            for (sender, answer) in senders.into_iter().zip(answers) {
                // Who has gone away meanwhile does not want to know.
                let _ = sender.send(answer);
            }
            batch = J::gather(&turn.0).state().take();
        }
    }
}

impl<J: Joined> State<J> {
    /// The next batch, without those that nobody waits for any more.
    fn take(&mut self) -> Batch<J> {
        let mut batch = Vec::new();
        while batch.len() < MOST
            && let Some(next) = self.gathered.pop_front()
        {
            if !next.1.is_closed() {
                batch.push(next);
            }
        }
        batch
    }
}

impl<J: Joined> fmt::Debug for Gather<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gather").finish_non_exhaustive()
    }
}

/// One of the calls that may be under way. However it ends, its turn goes to what was gathered
/// meanwhile.
struct Turn<J: Joined>(Arc<J::Context>);

impl<J: Joined> Drop for Turn<J> {
    fn drop(&mut self) {
        let mut state = J::gather(&self.0).state();
        let batch = state.take();
        match Handle::try_current() {
            Ok(runtime) if !batch.is_empty() => {
                drop(state);
                runtime.spawn(Gather::drain(Self(Arc::clone(&self.0)), batch));
            }
            Ok(_) => state.under_way -= 1,
            // Nobody is there to send anything. Those who wait for it learn of that.
            Err(_) => {
                state.under_way -= 1;
                state.gathered.clear();
            }
        }
    }
}

#[cfg(test)]
#[path = "gather_tests.rs"]
mod tests;
