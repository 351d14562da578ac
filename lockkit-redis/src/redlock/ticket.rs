//! One claim, round by round.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lockkit_core::{Attempt, Claim, Clock, Fence, Grant, Result, Ticket};

use super::acquire::Outcome;
use super::backend::Shared;
use super::record::tail;
use super::voter::Bid;

/// The longest time between two rounds of one claim.
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// A claim that tries again until it is lucky: there is no line.
#[derive(Debug)]
pub(crate) struct RedlockTicket {
    shared: Arc<Shared>,
    claim: Claim,
    /// The number of the last round, and how many there were.
    round: u64,
    rounds: u32,
}

impl RedlockTicket {
    pub(crate) fn new(shared: Arc<Shared>, claim: Claim) -> Self {
        Self {
            shared,
            claim,
            round: 0,
            rounds: 0,
        }
    }

    /// How long to wait before the next round: at random, so that those who split the votes part,
    /// and the longer the more rounds there were.
    fn pause(&self) -> Duration {
        let latency = self.shared.council.latency().max(Duration::from_millis(1));
        let most = latency.saturating_mul(2_u32.saturating_pow(self.rounds.min(20)));
        most.min(LONGEST_PAUSE)
            .mul_f64(rand::random_range(0.0..1.0))
    }
}

#[async_trait]
impl Ticket for RedlockTicket {
    async fn attempt(&mut self) -> Result<Attempt> {
        // Rounds rise also where a claim is entered twice.
        let micros = Clock::Boot.now().as_nanos() / 1000;
        self.round = micros.max(self.round + 1);
        self.rounds = self.rounds.saturating_add(1);
        let id = self.claim.id();
        let bid = Bid {
            ttl: self.claim.ttl,
            round: self.round,
            tail: tail(&self.shared.hearing.client, &self.claim.label),
            id,
        };
        match self.shared.council.acquire(bid, Clock::Boot).await? {
            Outcome::Held { token, sent_at } => Ok(Attempt::Held(Grant {
                fence: Fence::new(token),
                sent_at,
                ttl: self.claim.ttl,
                segment: None,
            })),
            Outcome::Busy => Ok(Attempt::Busy {
                recheck_after: Some(self.pause()),
            }),
        }
    }

    /// Nobody tells of a release: core's timer leads to the next round.
    async fn changed(&mut self) {
        std::future::pending().await
    }
}
