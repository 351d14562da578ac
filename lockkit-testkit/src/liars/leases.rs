//! Lies about how long a hold lives.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use lockkit_core::{
    Attempt, AttemptId, Backend, Claim, Clock, Grant, HoldId, Memory, Notices, Renewal, Result,
    Ticket,
};

use super::lie::Lie;

/// Hears that a hold is gone, from the service and from its renewals, and keeps it to itself.
#[derive(Debug, Default)]
pub(super) struct NeverTells;

#[async_trait]
impl Lie for NeverTells {
    fn notices(&self, _: Notices) -> Notices {
        Notices::default()
    }

    async fn renew(&self, truth: &Memory, ids: &[HoldId]) -> Vec<Renewal> {
        let lie = |answer| match answer {
            Renewal::Gone => Renewal::Renewed {
                sent_at: Clock::Tokio.now(),
                ttl: Duration::from_secs(30),
            },
            truth => truth,
        };
        truth.renew(ids).await.into_iter().map(lie).collect()
    }
}

/// Renews with a write that makes the row if it is not there.
#[derive(Debug, Default)]
pub(super) struct Revives {
    claims: Mutex<HashMap<AttemptId, Claim>>,
}

#[async_trait]
impl Lie for Revives {
    fn claim(&self, claim: Claim) -> Claim {
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        claims.insert(claim.attempt, claim.clone());
        claim
    }

    async fn renew(&self, truth: &Memory, ids: &[HoldId]) -> Vec<Renewal> {
        for id in ids {
            let claim = {
                let claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
                claims.get(&id.attempt()).cloned()
            };
            if let Some(claim) = claim
                && let Ok(mut ticket) = truth.enter(Claim {
                    wait: false,
                    ..claim
                })
            {
                // For a hold that is there, this changes nothing.
                let _ = ticket.attempt().await;
            }
        }
        truth.renew(ids).await
    }
}

/// Reads the clock when the reply is there.
#[derive(Debug, Default)]
pub(super) struct CountsFromTheReply;

/// How long the service takes for a reply, or the lie would do no harm.
const SLOW: Duration = Duration::from_millis(200);

#[async_trait]
impl Lie for CountsFromTheReply {
    async fn attempt(
        &self,
        _: &Memory,
        _: &Claim,
        ticket: &mut Box<dyn Ticket>,
    ) -> Result<Attempt> {
        let outcome = ticket.attempt().await?;
        tokio::time::sleep(SLOW).await;
        Ok(match outcome {
            Attempt::Held(grant) => Attempt::Held(Grant {
                sent_at: Clock::Tokio.now(),
                ..grant
            }),
            busy @ Attempt::Busy { .. } => busy,
        })
    }

    async fn renew(&self, truth: &Memory, ids: &[HoldId]) -> Vec<Renewal> {
        let answers = truth.renew(ids).await;
        tokio::time::sleep(SLOW).await;
        let late = |answer| match answer {
            Renewal::Renewed { ttl, .. } => Renewal::Renewed {
                sent_at: Clock::Tokio.now(),
                ttl,
            },
            other => other,
        };
        answers.into_iter().map(late).collect()
    }
}

/// Takes the lease that it asked for as the one that it got.
#[derive(Debug, Default)]
pub(super) struct ReportsWhatWasAskedFor;

#[async_trait]
impl Lie for ReportsWhatWasAskedFor {
    fn claim(&self, claim: Claim) -> Claim {
        Claim {
            ttl: claim.ttl / 2,
            ..claim
        }
    }

    async fn attempt(
        &self,
        _: &Memory,
        _: &Claim,
        ticket: &mut Box<dyn Ticket>,
    ) -> Result<Attempt> {
        Ok(match ticket.attempt().await? {
            Attempt::Held(grant) => Attempt::Held(Grant {
                ttl: grant.ttl * 2,
                ..grant
            }),
            busy @ Attempt::Busy { .. } => busy,
        })
    }

    async fn renew(&self, truth: &Memory, ids: &[HoldId]) -> Vec<Renewal> {
        let twice = |answer| match answer {
            Renewal::Renewed { sent_at, ttl } => Renewal::Renewed {
                sent_at,
                ttl: ttl * 2,
            },
            other => other,
        };
        truth.renew(ids).await.into_iter().map(twice).collect()
    }
}

/// Answers as the replies come in.
#[derive(Debug, Default)]
pub(super) struct MixesUpAnswers;

#[async_trait]
impl Lie for MixesUpAnswers {
    async fn renew(&self, truth: &Memory, ids: &[HoldId]) -> Vec<Renewal> {
        let mut answers = truth.renew(ids).await;
        answers.rotate_left(1);
        answers
    }
}

/// Renews where it should change whose life the hold hangs on.
#[derive(Debug, Default)]
pub(super) struct IgnoresDetachment;

#[async_trait]
impl Lie for IgnoresDetachment {
    async fn extend(&self, truth: &Memory, id: &HoldId, ttl: Duration) -> Renewal {
        match truth.renew(std::slice::from_ref(id)).await.pop() {
            Some(Renewal::Renewed { sent_at, .. }) => Renewal::Renewed { sent_at, ttl },
            _ => Renewal::Gone,
        }
    }
}
