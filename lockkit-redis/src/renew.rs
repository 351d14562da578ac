//! Keeping holds and places in line alive.

use lockkit_core::{HoldId, Primitive, Renewal};

use crate::error::odd;
use crate::shared::Shared;
use crate::transport::{Lane, Reply};

/// What a script that renews says of one id.
pub(crate) struct Lease {
    /// In ms: more than 0 for a hold, less for a place in line, 0 for what is gone.
    pub(crate) lease: i64,
    /// Something happened that no message may have told. Such a lease comes in an array of its own.
    pub(crate) has_news: bool,
}

impl Lease {
    pub(crate) fn read(reply: &Reply) -> Option<Self> {
        let (lease, has_news) = match reply {
            Reply::Array(items) => (items.first()?, true),
            lease => (lease, false),
        };
        let lease = lease.as_int()?;
        Some(Self { lease, has_news })
    }
}

/// Answers of one part of what was asked, and where in the whole they belong.
pub(crate) type Answered = (Vec<usize>, Vec<Renewal>);

impl Shared {
    /// See [`Backend::renew`](lockkit_core::Backend::renew).
    pub(crate) async fn renew(&self, lane: Lane, ids: &[HoldId]) -> Vec<Renewal> {
        let is_mutex = |at: &usize| ids[*at].resource().primitive() == Primitive::Mutex;
        let (mutexes, halls): (Vec<usize>, Vec<usize>) = (0..ids.len()).partition(is_mutex);
        let (mutex_ids, hall_ids) = (pick(&mutexes, |at| &ids[at]), pick(&halls, |at| &ids[at]));
        let (of_mutexes, of_halls) = futures_util::join!(
            self.renew_all_mutexes(lane, &mutex_ids),
            self.renew_halls(lane, &hall_ids)
        );
        in_order(ids.len(), vec![(mutexes, of_mutexes), (halls, of_halls)])
    }

    async fn renew_all_mutexes(&self, lane: Lane, ids: &[&HoldId]) -> Vec<Renewal> {
        let is_place = |at: &usize| self.inbox.standing(ids[*at].attempt()).is_some();
        let (places, holds): (Vec<usize>, Vec<usize>) = (0..ids.len()).partition(is_place);
        let (place_ids, hold_ids) = (pick(&places, |at| ids[at]), pick(&holds, |at| ids[at]));
        let (of_places, of_holds) = futures_util::join!(
            self.renew_mutex_places(lane, &place_ids),
            self.renew_mutexes(lane, &hold_ids)
        );
        in_order(ids.len(), vec![(places, of_places), (holds, of_holds)])
    }
}

fn pick<'a>(chosen: &[usize], id: impl Fn(usize) -> &'a HoldId) -> Vec<&'a HoldId> {
    chosen.iter().map(|&at| id(at)).collect()
}

/// Answers of several batches in the order of what was asked.
pub(crate) fn in_order(count: usize, batches: Vec<Answered>) -> Vec<Renewal> {
    let mut answers: Vec<Option<Renewal>> = (0..count).map(|_| None).collect();
    for (batch, renewals) in batches {
        for (at, renewal) in batch.into_iter().zip(renewals) {
            answers[at] = Some(renewal);
        }
    }
    let missing = || Renewal::Unknown(odd("a renewal"));
    answers
        .into_iter()
        .map(|answer| answer.unwrap_or_else(missing))
        .collect()
}
