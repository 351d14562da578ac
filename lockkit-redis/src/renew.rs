//! Keeping holds and places in line alive.

use lockkit_core::{HoldId, Renewal};

use crate::mutex::in_order;
use crate::shared::Shared;

impl Shared {
    /// See [`Backend::renew`](lockkit_core::Backend::renew).
    pub(crate) async fn renew(&self, ids: &[HoldId]) -> Vec<Renewal> {
        let is_place = |at: &usize| self.inbox.standing(ids[*at].attempt()).is_some();
        let (places, holds): (Vec<usize>, Vec<usize>) = (0..ids.len()).partition(is_place);
        let pick =
            |chosen: &[usize]| -> Vec<&HoldId> { chosen.iter().map(|&at| &ids[at]).collect() };
        let (place_ids, hold_ids) = (pick(&places), pick(&holds));
        let (of_places, mut of_holds) = futures_util::join!(
            self.renew_mutex_places(&place_ids),
            self.renew_mutexes(&hold_ids)
        );
        // What is no hold may still be a place of a claim that nobody waits for at the moment.
        let is_gone = |at: &usize| matches!(of_holds[*at], Renewal::Gone);
        let gone: Vec<usize> = (0..of_holds.len()).filter(is_gone).collect();
        if !gone.is_empty() {
            let gone_ids: Vec<&HoldId> = gone.iter().map(|&at| hold_ids[at]).collect();
            let again = self.renew_mutex_places(&gone_ids).await;
            for (at, renewal) in gone.into_iter().zip(again) {
                of_holds[at] = renewal;
            }
        }
        in_order(ids.len(), vec![(places, of_places), (holds, of_holds)])
    }
}
