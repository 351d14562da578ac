//! Latches: a count that opens at 0, and a line before it.

use std::time::Duration;

use lockkit_core::{AttemptId, Claim, CountDown, Fence, LockName, Resource, Result};

use crate::by_kind::Asked;
use crate::error::odd;
use crate::mutex::{Answer, order_flag};
use crate::shared::{Shared, milliseconds};
use crate::transport::Lane;

impl Shared {
    /// Passes a latch, or takes a place in line before it.
    pub(crate) async fn attempt_latch(&self, claim: &Claim, asked: Asked) -> Result<Answer> {
        let keys = self.prefix.keys(&claim.resource);
        self.listen(claim, keys.bucket).await?;
        let ttl = milliseconds(claim.ttl).to_string();
        let label = claim.label.encode();
        let parts = ['c', 'q', 'w'].map(|letter| keys.part(letter));
        let args = [
            (&claim.attempt).into(),
            (&ttl).into(),
            order_flag(claim.order).into(),
            if claim.wait { "w" } else { "" }.into(),
            self.inbox.reachable_as().into(),
            (&label).into(),
        ];
        let script = asked.choose(&self.scripts.latch_attempt, &self.scripts.latch_again);
        let reply = self
            .eval(Lane::Work, script, &parts, &args, keys.bucket)
            .await?;
        match reply.as_int() {
            Some(1) => Ok(Answer::Held {
                fence: Fence::new(0),
                segment: None,
            }),
            Some(left) => Ok(Answer::Busy(Duration::from_millis(left.unsigned_abs()))),
            None => Err(odd("an attempt")),
        }
    }

    /// See [`Backend::set_latch`](lockkit_core::Backend::set_latch). Under the same id again it changes
    /// nothing, as long as nobody has set the latch anew.
    pub(crate) async fn set_latch(
        &self,
        resource: &Resource,
        count: u32,
        id: AttemptId,
    ) -> Result<bool> {
        let keys = self.prefix.keys(resource);
        let parts = [keys.part('c'), keys.part('p')];
        let count = count.to_string();
        let args = [(&count).into(), (&id).into()];
        let script = &self.scripts.latch_set;
        let reply = self
            .eval(Lane::Work, script, &parts, &args, keys.bucket)
            .await?;
        match reply.as_int() {
            Some(set) => Ok(set == 1),
            None => Err(odd("the setting of a latch")),
        }
    }

    /// See [`Backend::count_down`](lockkit_core::Backend::count_down).
    pub(crate) async fn count_down(
        &self,
        resource: &Resource,
        participant: &LockName,
    ) -> Result<CountDown> {
        let keys = self.prefix.keys(resource);
        let parts = ['c', 'p', 'q', 'w'].map(|letter| keys.part(letter));
        let inbox = self.inbox_of(&keys);
        let args = [participant.as_str().into(), (&inbox).into()];
        let script = &self.scripts.latch_count;
        let reply = self
            .eval(Lane::Work, script, &parts, &args, keys.bucket)
            .await?;
        match reply.as_int() {
            Some(-1) => Ok(CountDown::NotSet),
            Some(left) => u32::try_from(left)
                .map(CountDown::Left)
                .map_err(|_| odd("a count")),
            None => Err(odd("a count")),
        }
    }
}
