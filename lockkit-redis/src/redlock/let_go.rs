//! Letting go, and giving a hold an expiry of its own: one question to all nodes, answered by a
//! majority.

use std::time::Duration;

use lockkit_core::{Clock, Error, HoldId, Released, Renewal, Resource, Result};

use super::council::Council;
use super::voter::{Freed, Which};

impl Council {
    /// Lets a hold go on all nodes; returns when a majority has answered, and it is clear whether a
    /// majority had it.
    pub(crate) async fn release(&self, id: &HoldId, which: Which) -> Result<Released> {
        self.note(id.attempt(), false);
        let mut answers = self.ask(|voter| {
            let id = id.clone();
            async move { voter.release(&id, which).await }
        });
        let (mut heard, mut confirmed, mut errors) = (0, 0, Vec::new());
        while let Some((_, answer)) = answers.recv().await {
            match answer {
                Err(error) => errors.push(error),
                Ok(freed) => {
                    heard += 1;
                    confirmed += usize::from(freed == Freed::Confirmed);
                }
            }
            let most = confirmed + self.voters.len() - heard;
            if confirmed >= self.majority() {
                return Ok(Released::Done);
            } else if heard >= self.majority() && most < self.majority() {
                return Ok(Released::NotHeld);
            }
        }
        if heard < self.majority() {
            return Err(self.absent(errors));
        }
        // The nodes that are missing may have had it too.
        Ok(match confirmed {
            0 => Released::NotHeld,
            _ => Released::Done,
        })
    }

    /// See [`Backend::extend`](lockkit_core::Backend::extend).
    pub(crate) async fn extend(&self, id: &HoldId, ttl: Duration, clock: Clock) -> Renewal {
        let sent_at = clock.now();
        let outcome = self.agree(|voter| {
            let id = id.clone();
            async move { voter.extend(&id, ttl).await }
        });
        match outcome.await {
            Ok(Some(_)) => Renewal::Renewed { sent_at, ttl },
            Ok(None) => {
                // A minority may have it, and would now keep it for longer.
                match self.release(id, Which::All).await {
                    Ok(_) => Renewal::Gone,
                    Err(error) => Renewal::Unknown(error),
                }
            }
            Err(error) => Renewal::Unknown(error),
        }
    }

    /// See [`Backend::request_release`](lockkit_core::Backend::request_release).
    pub(crate) async fn request(&self, resource: &Resource) -> Result<usize> {
        let outcome = self.agree(|voter| {
            let resource = resource.clone();
            async move { voter.request(&resource).await }
        });
        Ok(usize::from(outcome.await?.is_some()))
    }

    /// Asks all nodes for the token of a hold: what a majority says, or `None` if no majority can
    /// say the same.
    async fn agree<F>(
        &self,
        question: impl Fn(std::sync::Arc<dyn super::voter::Voter>) -> F,
    ) -> Result<Option<u64>>
    where
        F: Future<Output = Result<Option<u64>>> + Send + 'static,
    {
        let mut answers = self.ask(question);
        let (mut tokens, mut lacking): (Vec<u64>, usize) = (Vec::new(), 0);
        let mut errors: Vec<Error> = Vec::new();
        while let Some((_, answer)) = answers.recv().await {
            match answer {
                Err(error) => errors.push(error),
                Ok(None) => lacking += 1,
                Ok(Some(token)) => {
                    tokens.push(token);
                    let same = tokens.iter().filter(|other| **other == token).count();
                    if same >= self.majority() {
                        return Ok(Some(token));
                    }
                }
            }
            if self.voters.len() - lacking < self.majority() {
                return Ok(None);
            }
        }
        if errors.len() > self.voters.len() - self.majority() {
            return Err(self.absent(errors));
        }
        // Everybody who can vote was heard, and they do not agree on one hold.
        if errors.is_empty() {
            return Ok(None);
        }
        Err(self.absent(errors))
    }
}
