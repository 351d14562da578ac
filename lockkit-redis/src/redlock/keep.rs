//! Keeping holds: renewal, and giving a hold back to nodes that have lost it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use lockkit_core::{Clock, Error, HoldId, Instant, Renewal, Result};
use tokio::sync::mpsc;

use super::council::Council;
use super::voter::{Kept, Voter, Which};

/// How many holds one script renews.
const BATCH: usize = 200;

/// What is known of one hold, as the answers come in.
#[derive(Debug, Default)]
struct Tally {
    /// What each node that has it said.
    kept: Vec<(usize, Kept)>,
    /// The nodes that vote and do not have it.
    lacking: Vec<usize>,
}

impl Tally {
    /// What a majority confirms.
    fn confirmed(&self, majority: usize) -> Option<Kept> {
        let of = |kept: &Kept| {
            let same = self
                .kept
                .iter()
                .filter(|(_, other)| other.token == kept.token);
            same.count()
        };
        let (_, kept) = self.kept.iter().find(|(_, kept)| of(kept) >= majority)?;
        let same = self
            .kept
            .iter()
            .filter(|(_, other)| other.token == kept.token);
        let shortest = same.clone().map(|(_, kept)| kept.ttl).min()?;
        let asked = same.clone().any(|(_, kept)| kept.asked);
        Some(Kept {
            ttl: shortest,
            asked,
            ..*kept
        })
    }

    /// Whether no majority can have it.
    fn is_gone(&self, nodes: usize, majority: usize) -> bool {
        nodes - self.lacking.len() < majority
    }
}

/// A question about many holds, and what was answered so far.
struct Round {
    council: Council,
    ids: Arc<[HoldId]>,
    /// Which of them were held when they were asked about.
    held: Vec<bool>,
    /// When that was, on the clock by which ballots are numbered.
    asked_at: u64,
    tallies: Vec<Tally>,
    answers: mpsc::UnboundedReceiver<(usize, Result<Vec<Option<Kept>>>)>,
    errors: Vec<Error>,
}

impl Round {
    fn start(council: &Council, ids: &[HoldId]) -> Self {
        let ids: Arc<[HoldId]> = ids.into();
        let held = ids.iter().map(|id| council.holds(id.attempt())).collect();
        let asked_at = Clock::Boot.now().as_nanos() / 1000;
        let answers = council.ask(|voter| {
            let ids = Arc::clone(&ids);
            async move { voter.renew(&ids).await }
        });
        Self {
            council: council.clone(),
            tallies: ids.iter().map(|_| Tally::default()).collect(),
            held,
            asked_at,
            ids,
            answers,
            errors: Vec::new(),
        }
    }

    /// Takes the next answer in; `false` once all nodes have answered.
    async fn hear(&mut self) -> bool {
        let Some((node, answer)) = self.answers.recv().await else {
            return false;
        };
        match answer {
            Err(error) => self.errors.push(error),
            Ok(answers) => {
                for (tally, kept) in self.tallies.iter_mut().zip(answers) {
                    match kept {
                        Some(kept) => tally.kept.push((node, kept)),
                        None => tally.lacking.push(node),
                    }
                }
            }
        }
        true
    }

    fn is_decided(&self) -> bool {
        let (nodes, majority) = (self.council.voters.len(), self.council.majority());
        self.tallies
            .iter()
            .all(|tally| tally.confirmed(majority).is_some() || tally.is_gone(nodes, majority))
    }

    fn renewals(&mut self, sent_at: Instant, asked: &impl Fn(&HoldId)) -> Vec<Renewal> {
        let (nodes, majority) = (self.council.voters.len(), self.council.majority());
        let mut errors = Some(std::mem::take(&mut self.errors));
        let mut renewals = Vec::with_capacity(self.ids.len());
        for ((id, tally), held) in self.ids.iter().zip(&self.tallies).zip(&self.held) {
            renewals.push(match tally.confirmed(majority) {
                Some(kept) => {
                    if kept.asked {
                        asked(id);
                    }
                    Renewal::Renewed {
                        sent_at,
                        ttl: kept.ttl,
                    }
                }
                None if tally.is_gone(nodes, majority) => {
                    // What a minority may still have is in somebody's way. Who was not held yet is
                    // in the middle of a ballot, which cleans up after itself: what it is given
                    // meanwhile is not to be taken away.
                    if *held {
                        self.council.note(id.attempt(), false);
                        self.clean_up(id);
                    }
                    Renewal::Gone
                }
                None => Renewal::Unknown(self.council.absent(errors.take().unwrap_or_default())),
            });
        }
        renewals
    }

    /// Takes away what any node still has of a hold that was there when this was asked.
    fn clean_up(&self, id: &HoldId) {
        let which = Which::UpTo(self.asked_at);
        for voter in self.council.voters.iter().map(Arc::clone) {
            let id = id.clone();
            let errand = async move { voter.release(&id, which).await };
            self.council.errands.spawn(errand);
        }
    }

    /// Hears the slower nodes, then gives what the majority has to those that lack it.
    async fn repair(mut self) {
        while self.hear().await {}
        let majority = self.council.majority();
        for (id, tally) in self.ids.iter().zip(&self.tallies) {
            let Some(kept) = tally.confirmed(majority) else {
                continue;
            };
            let others = tally.kept.iter().filter(|(_, at)| at.token != kept.token);
            let lacking: Vec<usize> = others
                .map(|(node, _)| *node)
                .chain(tally.lacking.iter().copied())
                .collect();
            let source = tally.kept.iter().find(|(_, at)| at.token == kept.token);
            if let (false, Some((source, _))) = (lacking.is_empty(), source) {
                let source = &self.council.voters[*source];
                // What fails is tried again with the next renewal.
                let _ = self.council.give_back(id, kept, source, &lacking).await;
            }
        }
    }
}

impl Council {
    /// Renews holds: phase 2 again with the token that they have. `asked` is told of each hold whose
    /// holder was asked to let go.
    pub(crate) async fn renew(
        &self,
        ids: &[HoldId],
        clock: Clock,
        asked: impl Fn(&HoldId) + Send + Sync,
    ) -> Vec<Renewal> {
        let batches = ids.chunks(BATCH).map(|batch| async {
            let sent_at = clock.now();
            let mut round = Round::start(self, batch);
            while !round.is_decided() && round.hear().await {}
            let renewals = round.renewals(sent_at, &asked);
            self.errands.spawn(round.repair());
            renewals
        });
        join_all(batches).await.into_iter().flatten().collect()
    }

    async fn give_back(
        &self,
        id: &HoldId,
        kept: Kept,
        source: &Arc<dyn Voter>,
        lacking: &[usize],
    ) -> Result<()> {
        let known = source.inspect(id.resource()).await?;
        let same = known
            .hold
            .filter(|hold| hold.attempt == id.attempt() && hold.token == kept.token);
        let Some(record) = same.filter(|hold| hold.remaining > Duration::ZERO) else {
            return Ok(());
        };
        for node in lacking {
            if !self.holds(id.attempt()) {
                break;
            }
            self.voters[*node].repair(id, &record).await?;
            // It may have been let go meanwhile.
            if !self.holds(id.attempt()) {
                self.voters[*node].release(id, Which::All).await?;
            }
        }
        Ok(())
    }
}
