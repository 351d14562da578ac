//! Keeping holds alive.

use std::time::Duration;

use futures_util::future::join_all;
use lockkit_core::{Clock, HoldId, Instant, Renewal};

use super::backend::State;
use super::change::Change;
use crate::error::repeat;
use crate::renew::{Lease, in_order};
use crate::shared::MUTEXES;
use crate::transport::Lane;

impl State {
    /// See [`Backend::renew`](lockkit_core::Backend::renew).
    pub(super) async fn renew(&self, ids: &[HoldId]) -> Vec<Renewal> {
        let ttls = ids.iter().map(|id| self.waiting.ttl(id.attempt()));
        let ttls: Vec<Option<Duration>> = ttls.collect();
        let (places, holds): (Vec<usize>, Vec<usize>) =
            (0..ids.len()).partition(|&at| ttls[at].is_some());
        let sent_at = Clock::Boot.now();
        // A place that only this process knows cannot be lost.
        let of_places = places.iter().filter_map(|&at| ttls[at]);
        let of_places = of_places.map(|ttl| Renewal::Renewed { sent_at, ttl });
        let of_places = of_places.collect();
        let hold_ids: Vec<&HoldId> = holds.iter().map(|&at| &ids[at]).collect();
        let batches = self.shared.batches(&hold_ids, MUTEXES).into_iter();
        let batches = batches.map(|batch| async {
            let ids: Vec<&HoldId> = batch.iter().map(|&at| hold_ids[at]).collect();
            let renewals = self.renew_batch(&ids).await;
            (batch, renewals)
        });
        let of_holds = in_order(holds.len(), join_all(batches).await);
        in_order(ids.len(), vec![(places, of_places), (holds, of_holds)])
    }

    async fn renew_batch(&self, ids: &[&HoldId]) -> Vec<Renewal> {
        let sent_at = Clock::Boot.now();
        match self.change(Lane::Renewals, Change::Renew, ids).await {
            Ok(leases) => {
                for (id, _) in ids.iter().zip(&leases).filter(|(_, lease)| lease.has_news) {
                    self.shared.inbox.asked(id);
                }
                let renewals = leases.iter().map(|lease| renewal(sent_at, lease));
                renewals.collect()
            }
            Err(error) => ids
                .iter()
                .map(|_| Renewal::Unknown(repeat(&error)))
                .collect(),
        }
    }

    /// See [`Backend::extend`](lockkit_core::Backend::extend).
    pub(super) async fn extend(&self, id: &HoldId, ttl: u64) -> Renewal {
        let sent_at = Clock::Boot.now();
        match self.change(Lane::Work, Change::Extend(ttl), &[id]).await {
            Ok(leases) => renewal(sent_at, &leases[0]),
            Err(error) => Renewal::Unknown(error),
        }
    }
}

/// What a lease says; 0 is none.
const fn renewal(sent_at: Instant, lease: &Lease) -> Renewal {
    match lease.lease {
        0 => Renewal::Gone,
        lease => Renewal::Renewed {
            sent_at,
            ttl: Duration::from_millis(lease.unsigned_abs()),
        },
    }
}
