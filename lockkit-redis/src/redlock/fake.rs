//! Nodes in memory, behind a network that delays, loses and reorders, on a clock that can be told.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use lockkit_core::{AttemptId, Error, ErrorKind, HoldId, Resource, Result};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

use super::ballot::Proposed;
use super::voter::{Bid, Freed, Kept, Known, Record, Voter, Which};

/// How long a client waits for one node.
const PATIENCE: Duration = Duration::from_millis(50);

#[derive(Clone, Debug)]
struct Hold {
    attempt: AttemptId,
    round: u64,
    base: u64,
    token: u64,
    ttl: Duration,
    until: Instant,
}

/// A node, as the scripts treat it.
#[derive(Debug, Default)]
pub(super) struct FakeNode {
    holds: HashMap<Resource, Hold>,
    counter: u64,
}

impl FakeNode {
    fn hold(&mut self, resource: &Resource) -> Option<&mut Hold> {
        let now = Instant::now();
        self.holds.retain(|_, hold| hold.until > now);
        self.holds.get_mut(resource)
    }

    fn propose(&mut self, bid: &Bid) -> Proposed {
        let (counter, until) = (self.counter, Instant::now() + bid.ttl);
        let attempt = bid.id.attempt();
        if let Some(hold) = self.hold(bid.id.resource()) {
            if hold.attempt != attempt || hold.round > bid.round {
                return Proposed::Theirs { counter };
            }
            (hold.round, hold.until) = (bid.round, until);
            let (counter, token) = (hold.base, hold.token);
            return Proposed::Ours { counter, token };
        }
        let hold = Hold {
            attempt,
            round: bid.round,
            base: counter,
            token: 0,
            ttl: bid.ttl,
            until,
        };
        self.holds.insert(bid.id.resource().clone(), hold);
        Proposed::Ours { counter, token: 0 }
    }

    fn confirm(&mut self, bid: &Bid, token: u64) -> bool {
        let Some(hold) = self.hold(bid.id.resource()) else {
            return false;
        };
        let is_ours = hold.attempt == bid.id.attempt() && hold.round == bid.round;
        if !is_ours || hold.base >= token || hold.token > token {
            return false;
        }
        (hold.token, hold.until) = (token, Instant::now() + bid.ttl);
        self.counter = self.counter.max(token);
        true
    }

    fn renew(&mut self, id: &HoldId) -> Option<Kept> {
        let hold = self.hold(id.resource())?;
        if hold.attempt != id.attempt() || hold.token == 0 {
            return None;
        }
        hold.until = Instant::now() + hold.ttl;
        Some(Kept {
            token: hold.token,
            ttl: hold.ttl,
            asked: false,
        })
    }

    fn release(&mut self, id: &HoldId, which: Which) -> Freed {
        let Some(hold) = self.hold(id.resource()) else {
            return Freed::Nothing;
        };
        let is_later = matches!(which, Which::UpTo(round) if hold.round > round);
        if hold.attempt != id.attempt() || is_later {
            return Freed::Nothing;
        }
        let token = hold.token;
        self.holds.remove(id.resource());
        if token > 0 {
            Freed::Confirmed
        } else {
            Freed::Taken
        }
    }
}

/// One client's way to a node.
#[derive(Clone, Debug)]
pub(super) struct FakeVoter {
    pub(super) node: Arc<Mutex<FakeNode>>,
    /// Of a thousand messages, how many are lost.
    pub(super) lost: u32,
    /// Of a thousand messages, how many take longer than a lease.
    pub(super) late: u32,
}

impl FakeVoter {
    fn travel(&self) -> Option<Duration> {
        if rand::random_range(0..1000) < self.lost {
            return None;
        }
        let late = rand::random_range(0..1000) < self.late;
        Some(Duration::from_micros(match late {
            true => rand::random_range(50_000..3_000_000),
            false => rand::random_range(100..5_000),
        }))
    }

    /// A request, and its reply: each may be lost or late, and the request takes effect all the same.
    async fn call<T: Send + 'static>(
        &self,
        effect: impl FnOnce(&mut FakeNode) -> T + Send + 'static,
    ) -> Result<T> {
        let (there, back) = (self.travel(), self.travel());
        let (reply, replied) = oneshot::channel();
        if let Some(there) = there {
            let node = Arc::clone(&self.node);
            tokio::spawn(async move {
                sleep(there).await;
                let answer = effect(&mut node.lock().expect("no panic"));
                if let Some(back) = back {
                    sleep(back).await;
                    let _ = reply.send(answer);
                }
            });
        }
        let silent = || Error::new(ErrorKind::Unavailable, "silent");
        let replied = timeout(PATIENCE, replied).await.map_err(|_| silent())?;
        replied.map_err(|_| silent())
    }
}

#[async_trait]
impl Voter for FakeVoter {
    fn named(&self, error: Error) -> Error {
        error
    }

    async fn ready(&self) -> Result<()> {
        Ok(())
    }

    async fn propose(&self, bid: &Bid) -> Result<Proposed> {
        let bid = bid.clone();
        self.call(move |node| node.propose(&bid)).await
    }

    async fn confirm(&self, bid: &Bid, token: u64) -> Result<bool> {
        let bid = bid.clone();
        self.call(move |node| node.confirm(&bid, token)).await
    }

    async fn renew(&self, ids: &[HoldId]) -> Result<Vec<Option<Kept>>> {
        let ids = ids.to_vec();
        self.call(move |node| ids.iter().map(|id| node.renew(id)).collect())
            .await
    }

    async fn repair(&self, id: &HoldId, record: &Record) -> Result<bool> {
        let (id, record) = (id.clone(), record.clone());
        self.call(move |node| {
            let counter = node.counter;
            match node.hold(id.resource()) {
                Some(hold) if hold.attempt != id.attempt() => return false,
                Some(hold) if hold.token >= record.token => return true,
                Some(hold) if hold.base >= record.token => return false,
                None if counter > record.token => return false,
                _ => {}
            }
            let hold = Hold {
                attempt: id.attempt(),
                round: 0,
                base: record.token - 1,
                token: record.token,
                ttl: record.remaining,
                until: Instant::now() + record.remaining,
            };
            node.holds.insert(id.resource().clone(), hold);
            node.counter = node.counter.max(record.token);
            true
        })
        .await
    }

    async fn extend(&self, _: &HoldId, _: Duration) -> Result<Option<u64>> {
        Ok(None)
    }

    async fn release(&self, id: &HoldId, which: Which) -> Result<Freed> {
        let id = id.clone();
        self.call(move |node| node.release(&id, which)).await
    }

    async fn request(&self, _: &Resource) -> Result<Option<u64>> {
        Ok(None)
    }

    async fn inspect(&self, resource: &Resource) -> Result<Known> {
        let resource = resource.clone();
        self.call(move |node| {
            let counter = node.counter;
            let hold = node.hold(&resource).map(|hold| Record {
                attempt: hold.attempt,
                token: hold.token,
                remaining: hold.until - Instant::now(),
                stored: Vec::new(),
            });
            Known { hold, counter }
        })
        .await
    }

    async fn names(&self) -> Result<Vec<Resource>> {
        Ok(Vec::new())
    }
}
