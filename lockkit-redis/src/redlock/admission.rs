//! Who may vote: nodes that remember whatever they ever confirmed.
//!
//! A node that started anew without its memory may give its hold a second time, and confirm a
//! token that is no higher than one that it has confirmed before. So it does not vote until
//!
//! 1. every lease that may have counted on its vote has run out: as long as the longest lease that
//!    any client takes, since it was first found so; and then
//! 2. it has the counters of a majority, of which at least one node was part of each such grant.
//!
//! Neither is enough alone. With its counters but without its holds it would help somebody else to
//! a majority while a holder still believes in its lease; after the time but without the counters it
//! would confirm old tokens again.
//!
//! If too few nodes remember, nobody can be asked: after the time, those that are there go on from
//! their wall clocks, in microseconds, which is above all tokens as long as clocks do not go back.
//! Where *no* node remembers anything and all answer, nothing was ever held, and all vote at once.
//!
//! A server that writes each change to disk before it answers (`appendonly yes`, `appendfsync
//! always`) forgets nothing, and votes at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use lockkit_core::Clock;

use super::ballot::majority;
use super::peer::{FLOOR, Memory, Peer, Standing};

/// The shortest time between two looks at who may vote.
const PAUSE: Duration = Duration::from_millis(100);

/// Decides who may vote.
#[derive(Debug)]
pub(crate) struct Admission {
    pub(crate) peers: Vec<Arc<Peer>>,
    pub(crate) max_lease: Duration,
    /// When the last look began, in nanoseconds.
    looked_at: AtomicU64,
}

impl Admission {
    pub(crate) fn new(peers: Vec<Arc<Peer>>, max_lease: Duration) -> Arc<Self> {
        Arc::new(Self {
            peers,
            max_lease,
            looked_at: AtomicU64::new(0),
        })
    }

    /// A node was met that may not vote. Looks whether it may now, unless that was done just now.
    pub(crate) fn met_forgetful(self: &Arc<Self>) {
        let now = Clock::Boot.now().as_nanos();
        let before = self.looked_at.load(Ordering::Relaxed);
        let pause = u64::try_from(PAUSE.as_nanos()).unwrap_or(u64::MAX);
        let first = now.saturating_sub(before) >= pause
            && self
                .looked_at
                .compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if first {
            let admission = Arc::clone(self);
            tokio::spawn(async move { admission.look().await });
        }
    }

    /// Asks all nodes what they remember, and lets in those that may vote now.
    pub(crate) async fn look(&self) {
        let standings = self.peers.iter().map(|peer| peer.standing(self.max_lease));
        let standings: Vec<Option<Standing>> = join_all(standings)
            .await
            .into_iter()
            .map(Result::ok)
            .collect();
        let lease = standings.iter().flatten().map(|standing| standing.lease);
        let lease = lease.max().unwrap_or(self.max_lease);
        let is_new = standings
            .iter()
            .all(|standing| standing.is_some_and(|standing| standing.memory == Memory::None));
        let admitted = standings.iter().zip(&self.peers).filter(|(standing, _)| {
            standing.is_some_and(|standing| {
                standing.memory != Memory::Whole && (is_new || standing.waited >= lease)
            })
        });
        let admitted: Vec<&Arc<Peer>> = admitted.map(|(_, peer)| peer).collect();
        if admitted.is_empty() {
            return;
        }
        let voting = standings.iter().zip(&self.peers).filter(|(standing, _)| {
            standing.is_some_and(|standing| standing.memory == Memory::Whole)
        });
        let asked = voting.map(|(_, peer)| peer.counters());
        let mut heard = 0;
        let mut highest: BTreeMap<String, u64> = BTreeMap::new();
        for counters in join_all(asked).await.into_iter().flatten().flatten() {
            heard += 1;
            for (field, counter) in counters {
                let known = highest.entry(field).or_default();
                *known = counter.max(*known);
            }
        }
        if heard < majority(self.peers.len()) {
            // The same floor for all, or the token of some would be refused by the others.
            let clocks = standings.iter().flatten().map(|standing| standing.clock);
            let floor = highest.entry(FLOOR.to_owned()).or_default();
            *floor = clocks.max().unwrap_or(0).max(*floor);
        }
        let counters: Vec<(String, u64)> = highest.into_iter().collect();
        // What fails is met again.
        join_all(admitted.iter().map(|peer| peer.adopt(&counters))).await;
    }
}
