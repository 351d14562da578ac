//! The two phases, over the nodes.

use std::sync::Arc;

use lockkit_core::{Clock, Error, Instant, Result};
use tokio::sync::{mpsc, watch};

use super::ballot::{Ballot, Course, Proposed};
use super::council::Council;
use super::voter::{Bid, Voter, Which};

/// What a round brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Held, with this token, for the lease from the moment when phase 2 was sent.
    Held { token: u64, sent_at: Instant },
    /// Somebody else holds it, or had as many votes.
    Busy,
}

/// How far a round has come, told to those who talk to the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Proposing,
    Confirming(u64),
    Granted(u64),
    Failed,
}

/// What one node said.
enum Heard {
    Proposed(Result<Proposed>),
    Confirmed(Result<bool>),
}

impl Council {
    /// One round of a claim. Returns as soon as a majority has decided; the slower nodes are talked
    /// to by tasks of their own. If it does not succeed, what it took is let go by them.
    pub(crate) async fn acquire(&self, bid: Bid, clock: Clock) -> Result<Outcome> {
        let (tell, mut heard) = mpsc::unbounded_channel();
        let (stage, _) = watch::channel(Stage::Proposing);
        let bid = Arc::new(bid);
        for (node, voter) in self.voters.iter().enumerate() {
            let tell = tell.clone();
            let tell = move |what| {
                // Nobody listens once it is decided.
                let _ = tell.send((node, what));
            };
            let canvass = Canvass {
                council: self.clone(),
                voter: Arc::clone(voter),
                bid: Arc::clone(&bid),
                stage: stage.subscribe(),
            };
            self.errands.spawn(canvass.run(tell));
        }
        drop(tell);
        let mut ballot = Ballot::new(self.voters.len());
        let mut errors: Vec<Error> = Vec::new();
        let started = clock.now();
        let mut sent_at = started;
        while let Some((node, what)) = heard.recv().await {
            let mut note = |error| errors.push(self.voters[node].named(error));
            let course = match what {
                Heard::Proposed(answer) => ballot.proposed(node, answer.map_err(&mut note).ok()),
                Heard::Confirmed(answer) => ballot.confirmed(node, answer.map_err(&mut note).ok()),
            };
            match course {
                Course::Open => {}
                Course::Elected(token) => {
                    sent_at = clock.now();
                    self.measured(sent_at.saturating_duration_since(started));
                    stage.send_replace(Stage::Confirming(token));
                }
                Course::Granted(token) => {
                    self.note(bid.id.attempt(), true);
                    stage.send_replace(Stage::Granted(token));
                    return Ok(Outcome::Held { token, sent_at });
                }
                Course::Lost => {
                    stage.send_replace(Stage::Failed);
                    return Ok(Outcome::Busy);
                }
                Course::Absent => break,
            }
        }
        stage.send_replace(Stage::Failed);
        Err(self.absent(errors))
    }
}

/// Talks to one node until the round is over, also after its caller was answered or has gone.
struct Canvass {
    council: Council,
    voter: Arc<dyn Voter>,
    bid: Arc<Bid>,
    stage: watch::Receiver<Stage>,
}

impl Canvass {
    async fn run(mut self, tell: impl Fn(Heard) + Send) {
        let ready = self.voter.ready().await;
        if matches!(*self.stage.borrow(), Stage::Granted(_) | Stage::Failed) {
            return; // Too late to be asked, and nothing was sent.
        }
        let proposed = match ready {
            Ok(()) => self.voter.propose(&self.bid).await,
            Err(error) => return tell(Heard::Proposed(Err(error))),
        };
        // Without an answer the node may have given its hold all the same.
        let nothing = matches!(proposed, Ok(Proposed::Theirs { .. }));
        let ours = matches!(proposed, Ok(Proposed::Ours { .. }));
        // If this node is too slow to be counted, the hold may be let go before it has it. Looked at
        // before its word is told, because its own may be the one that decides.
        let over = |stage: &Stage| matches!(stage, Stage::Granted(_) | Stage::Failed);
        let mut late = over(&self.stage.borrow());
        tell(Heard::Proposed(proposed));
        if nothing {
            return;
        }
        let elected = self.reach(|stage| !matches!(stage, Stage::Proposing)).await;
        if let (true, Stage::Confirming(token) | Stage::Granted(token)) = (ours, elected) {
            let confirmed = self.voter.confirm(&self.bid, token).await;
            late = over(&self.stage.borrow());
            tell(Heard::Confirmed(confirmed));
        }
        let end = self.reach(over).await;
        if end == Stage::Failed || (late && !self.council.holds(self.bid.id.attempt())) {
            // If it does not arrive either, the lease ends what it took.
            let which = Which::UpTo(self.bid.round);
            let _ = self.voter.release(&self.bid.id, which).await;
        }
    }

    /// Waits for a stage. A caller that is dropped with its runtime has failed.
    async fn reach(&mut self, is_there: impl FnMut(&Stage) -> bool) -> Stage {
        let stage = self.stage.wait_for(is_there).await;
        stage.map_or(Stage::Failed, |stage| *stage)
    }
}
