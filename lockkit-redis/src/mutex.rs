//! Mutexes: one key each, with the lease as its expiry.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::join_all;
use lockkit_core::{Claim, Fence, HoldId, Instant, Order, Released, Renewal, Resource, Result};

use crate::by_kind::Asked;
use crate::error::odd;
use crate::key::Keys;
use crate::renew::in_order;
use crate::shared::{HALLS, MUTEXES, Shared, milliseconds, stamp};
use crate::transport::{Arg, Lane, Reply};

/// What an attempt brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Held {
        fence: Fence,
        segment: Option<u32>,
    },
    /// So much is left of the lease that ends first.
    Busy(Duration),
}

impl Shared {
    /// Takes a mutex or a place in line.
    pub(crate) async fn attempt_mutex(
        &self,
        claim: &Claim,
        asked: Asked,
        sent_at: Instant,
    ) -> Result<Answer> {
        let keys = self.prefix.keys(&claim.resource);
        let ttl = milliseconds(claim.ttl).to_string();
        let (tail, inbox) = (self.tail(claim), self.inbox_of(&keys));
        let stamp = stamp(sent_at);
        let how = match (asked, claim.order) {
            (Asked::Perhaps | Asked::InLine, _) => "a",
            (Asked::Never, Order::Fair) => "f",
            (Asked::Never, _) => "b",
        };
        let args = [
            (&claim.attempt).into(),
            (&ttl).into(),
            how.into(),
            if claim.wait { "w" } else { "" }.into(),
            Arg::Run,
            (&tail).into(),
            (&inbox).into(),
            order_flag(claim.order).into(),
            (&stamp).into(),
        ];

        self.listen(claim, keys.bucket).await?;
        let script = asked.choose(&self.scripts.mutex_acquire, &self.scripts.mutex_again);
        let reply = self
            .eval(Lane::Work, script, &mutex_keys(&keys), &args, keys.bucket)
            .await?;
        answer(&reply)
    }

    /// Lets a mutex or a place in line go; `evicted` to tell the holder that an operator took it.
    pub(crate) async fn release_mutex(&self, id: &HoldId, evicted: bool) -> Result<Released> {
        let keys = self.prefix.keys(id.resource());
        let attempt = id.attempt();
        let named = if evicted {
            id.resource().key()
        } else {
            String::new()
        };
        let inbox = self.inbox_of(&keys);
        let args = [
            (&attempt).into(),
            Arg::Run,
            (&inbox).into(),
            (&named).into(),
        ];
        let script = &self.scripts.mutex_release;
        let reply = self
            .eval(Lane::Work, script, &mutex_keys(&keys), &args, keys.bucket)
            .await?;
        released(&reply)
    }

    /// Renews holds of mutexes, many at a time.
    pub(crate) async fn renew_mutexes(&self, lane: Lane, ids: &[&HoldId]) -> Vec<Renewal> {
        let batches = self
            .batches(ids, MUTEXES)
            .into_iter()
            .map(|batch| async move {
                let keys: Vec<String> = batch
                    .iter()
                    .map(|&at| self.prefix.keys(ids[at].resource()).main())
                    .collect();
                let renewals = self
                    .renew_batch(lane, &self.scripts.mutex_renew, false, &keys, &batch, ids)
                    .await;
                (batch, renewals)
            });
        in_order(ids.len(), join_all(batches).await)
    }

    /// Renews places in line for mutexes.
    pub(crate) async fn renew_mutex_places(&self, lane: Lane, ids: &[&HoldId]) -> Vec<Renewal> {
        let batches = self
            .batches(ids, HALLS)
            .into_iter()
            .map(|batch| async move {
                let keys = batch.iter().flat_map(|&at| {
                    let keys = self.prefix.keys(ids[at].resource());
                    [keys.main(), keys.part('q'), keys.part('w')]
                });
                let keys: Vec<String> = keys.collect();
                let renewals = self
                    .renew_batch(
                        lane,
                        &self.scripts.mutex_renew_places,
                        true,
                        &keys,
                        &batch,
                        ids,
                    )
                    .await;
                (batch, renewals)
            });
        in_order(ids.len(), join_all(batches).await)
    }

    /// See [`Backend::extend`](lockkit_core::Backend::extend).
    pub(crate) async fn extend_mutex(
        &self,
        id: &HoldId,
        ttl: Duration,
    ) -> Result<Option<Duration>> {
        let keys = self.prefix.keys(id.resource());
        let attempt = id.attempt();
        let millis = milliseconds(ttl).to_string();
        let args = [(&attempt).into(), (&millis).into()];
        let script = &self.scripts.mutex_extend;
        let reply = self
            .eval(Lane::Work, script, &[keys.main()], &args, keys.bucket)
            .await?;
        match reply.as_int() {
            Some(0) => Ok(None),
            Some(millis) => Ok(Some(Duration::from_millis(millis.unsigned_abs()))),
            None => Err(odd("an extension")),
        }
    }

    /// See [`Backend::request_release`](lockkit_core::Backend::request_release).
    pub(crate) async fn request_mutex(&self, resource: &Resource) -> Result<usize> {
        let keys = self.prefix.keys(resource);
        let (inbox, named) = (self.inbox_of(&keys), resource.key());
        let args = [(&inbox).into(), (&named).into()];
        let script = &self.scripts.mutex_request;
        let reply = self
            .eval(Lane::Work, script, &[keys.main()], &args, keys.bucket)
            .await?;
        let count = reply.as_int().and_then(|count| count.try_into().ok());
        count.ok_or_else(|| odd("a request to let go"))
    }

    /// What a hold and a place say about a claim, for people: since when and who.
    pub(crate) fn tail(&self, claim: &Claim) -> String {
        format!(
            "{}:-:{}:{}",
            wall_clock_ms(),
            self.inbox.reachable_as(),
            claim.label.encode()
        )
    }
}

/// All keys of a mutex, in the order of the scripts.
fn mutex_keys(keys: &Keys) -> [String; 5] {
    [
        keys.main(),
        keys.part('q'),
        keys.part('w'),
        keys.fence(),
        keys.server(),
    ]
}

/// How a place in line shows its order.
pub(crate) const fn order_flag(order: Order) -> &'static str {
    match order {
        Order::Fair => "f",
        _ => "b",
    }
}

/// Reads the reply of an attempt.
pub(crate) fn answer(reply: &Reply) -> Result<Answer> {
    match reply {
        Reply::Int(fence @ 1..) => Ok(Answer::Held {
            fence: Fence::new(fence.unsigned_abs()),
            segment: None,
        }),
        Reply::Int(left) => Ok(Answer::Busy(Duration::from_millis(left.unsigned_abs()))),
        _ => Err(odd("an attempt")),
    }
}

/// Reads the reply of a release.
pub(crate) fn released(reply: &Reply) -> Result<Released> {
    match reply.as_int() {
        Some(0) => Ok(Released::NotHeld),
        Some(_) => Ok(Released::Done),
        None => Err(odd("a release")),
    }
}

/// For people only: no algorithm compares it with another clock.
fn wall_clock_ms() -> u128 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_millis()
}
