//! Mutexes: one key each, with the lease as its expiry.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::join_all;
use lockkit_core::{
    AttemptId, Claim, Clock, Fence, HoldId, Instant, Order, Released, Renewal, Resource, Result,
};

use crate::by_kind::Asked;
use crate::error::odd;
use crate::key::Keys;
use crate::renew::in_order;
use crate::script::Script;
use crate::shared::{HALLS, MUTEXES, Shared, milliseconds};
use crate::short::Short;
use crate::transport::{Arg, Call, Lane, Reply};

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
        self: &Arc<Self>,
        claim: &Claim,
        mut asked: Asked,
        sent_at: Instant,
    ) -> Result<Answer> {
        let keys = self.prefix.keys(&claim.resource);
        if asked == Asked::Never && claim.order != Order::Fair {
            match self.attempt_shortly(claim, &keys, sent_at).await? {
                Short::Done(answer) => return Ok(answer),
                Short::GoOn => {}
                Short::LookAgain => asked = Asked::Perhaps,
            }
        }
        // Boxed, so that who goes the short way does not carry the long one along.
        let answer = Box::pin(self.attempt_at_length(claim, &keys, asked, sent_at)).await?;
        if matches!(answer, Answer::Busy(_)) {
            self.contention.seen(keys.name(), sent_at);
        }
        Ok(answer)
    }

    async fn attempt_shortly(
        self: &Arc<Self>,
        claim: &Claim,
        keys: &Keys,
        now: Instant,
    ) -> Result<Short<Answer>> {
        if !self.is_short_way_open(keys, now) {
            if claim.wait || !self.route.is_one() {
                return Ok(Short::GoOn);
            }
            if let Some(left) = Box::pin(self.peek(keys, claim.ttl)).await? {
                return Ok(Short::Done(Answer::Busy(left)));
            }
        }
        Ok(match self.take(claim, keys).await? {
            Short::Done(fence) => Short::Done(Answer::Held {
                fence,
                segment: None,
            }),
            Short::GoOn => Short::GoOn,
            Short::LookAgain => Short::LookAgain,
        })
    }

    async fn attempt_at_length(
        &self,
        claim: &Claim,
        keys: &Keys,
        asked: Asked,
        sent_at: Instant,
    ) -> Result<Answer> {
        let ttl = milliseconds(claim.ttl).to_string();
        let head = head(claim.attempt);
        let tail = self.tail(&ttl, claim);
        let how = match (asked, claim.order) {
            (Asked::Perhaps | Asked::InLine, _) => 'a',
            (Asked::Never, Order::Fair) => 'f',
            (Asked::Never, _) => 'b',
        };
        let waits = if claim.wait { 'w' } else { '-' };
        let flag = order_flag(claim.order);
        let how = format!("{how}{waits}{flag}{}:", sent_at.as_nanos());
        let inbox = self.inbox_of(keys);
        let args = [
            Arg::Bytes(&head),
            (&ttl).into(),
            (&tail).into(),
            Arg::Signed(how.as_bytes(), inbox.as_bytes()),
        ];

        self.listen(claim, keys.bucket).await?;
        let script = asked.choose(&self.scripts.mutex_acquire, &self.scripts.mutex_again);
        answer(&self.eval_mutex(script, keys, &args).await?)
    }

    /// Lets a mutex or a place in line go; `evicted` to tell the holder that an operator took it.
    pub(crate) async fn release_mutex(
        self: &Arc<Self>,
        id: &HoldId,
        evicted: bool,
    ) -> Result<Released> {
        let keys = self.prefix.keys(id.resource());
        let now = Clock::Boot.now();
        if !evicted && self.is_short_way_open(&keys, now) {
            if self.leave(id, &keys).await? {
                return Ok(Released::Done);
            }
            self.contention.seen(keys.name(), now);
        }
        Box::pin(self.release_at_length(id, evicted, &keys)).await
    }

    async fn release_at_length(&self, id: &HoldId, evicted: bool, keys: &Keys) -> Result<Released> {
        let head = head(id.attempt());
        let named = id.resource().key();
        let inbox = self.inbox_of(keys);
        let args = [
            Arg::Bytes(&head),
            Arg::Signed(b"", inbox.as_bytes()),
            (&named).into(),
        ];
        let args = if evicted { &args[..] } else { &args[..2] };
        released(
            &self
                .eval_mutex(&self.scripts.mutex_release, keys, args)
                .await?,
        )
    }

    /// Runs a script that may issue a fence for a mutex.
    async fn eval_mutex(&self, script: &Script, keys: &Keys, args: &[Arg<'_>]) -> Result<Reply> {
        let call = Call {
            script,
            bucket: keys.bucket,
            keys: &[keys.main(), keys.fence(), keys.part('q'), keys.part('w')],
            args,
            server: Some(&keys.server()),
        };
        self.route.eval(Lane::Work, &call).await
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

    /// What a hold says about a claim behind its fence, for people: its lease, since when, no flag,
    /// and who.
    pub(crate) fn tail(&self, ttl: &str, claim: &Claim) -> String {
        let mut tail = String::with_capacity(96);
        tail.push(':');
        tail.push_str(ttl);
        tail.push(':');
        tail.push_str(&wall_clock_ms().to_string());
        tail.push_str(":-:");
        tail.push_str(self.inbox.reachable_as());
        tail.push(':');
        tail.push_str(&claim.label.encode());
        tail
    }
}

/// What the record of a hold begins with: its version, and the attempt.
pub(crate) fn head(attempt: AttemptId) -> [u8; 17] {
    let mut head = [b'1'; 17];
    head[1..].copy_from_slice(attempt.as_bytes());
    head
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
