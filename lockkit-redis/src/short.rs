//! The short way for a mutex that nobody else wants: scripts that look at no line, for one mutex or for
//! many at a time.
//!
//! [`Contention`](crate::contention::Contention) guesses whether it is worth a try; if it was not, the
//! scripts of `mutex.rs` follow, which know all cases. So a wrong guess costs a request, and nothing
//! else.

use std::sync::Arc;
use std::time::Duration;

use lockkit_core::{Claim, Fence, HoldId, Instant, Result};

use crate::error::{odd, translated};
use crate::gather::{Gather, Joined};
use crate::key::{Bucket, Keys};
use crate::mutex::head;
use crate::script::Script;
use crate::shared::{Shared, milliseconds};
use crate::transport::{Arg, Call, Errand, Failure, Lane, Live, Reply, Request};

/// How far the short way has led.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Short<T> {
    Done(T),
    /// Nowhere: nothing was done.
    GoOn,
    /// The server refused a batch, of which this may have been done.
    LookAgain,
}

/// A mutex to be taken.
#[derive(Debug)]
pub(crate) struct Take {
    bucket: Bucket,
    hold: String,
    fence: String,
    words: Words,
}

/// What is said about a mutex to be taken.
#[derive(Debug)]
struct Words {
    head: [u8; 17],
    ttl: String,
    tail: String,
}

/// A mutex to be let go.
#[derive(Debug)]
pub(crate) struct Leave {
    hold: String,
    queue: String,
    head: [u8; 17],
}

impl Shared {
    /// Takes a mutex, if it is free and probably nobody is in line.
    pub(crate) async fn take(self: &Arc<Self>, claim: &Claim, keys: &Keys) -> Result<Short<Fence>> {
        let ttl = milliseconds(claim.ttl).to_string();
        let take = Take {
            bucket: keys.bucket,
            hold: keys.main(),
            fence: keys.fence(),
            words: Words {
                head: head(claim.attempt),
                tail: self.tail(&ttl, claim),
                ttl,
            },
        };
        Ok(match Gather::call(self, take).await? {
            Short::Done(0) | Short::GoOn => Short::GoOn,
            Short::Done(fence) => Short::Done(Fence::new(fence.unsigned_abs())),
            Short::LookAgain => Short::LookAgain,
        })
    }

    /// Lets a mutex go, if it is ours and nobody is in line; whether it did.
    pub(crate) async fn leave(self: &Arc<Self>, id: &HoldId, keys: &Keys) -> Result<bool> {
        let leave = Leave {
            hold: keys.main(),
            queue: keys.part('q'),
            head: head(id.attempt()),
        };
        Ok(Gather::call(self, leave).await? == Short::Done(1))
    }

    /// Whether somebody holds a mutex, for who does not wait for it: what is left of the lease. Not
    /// told if it is longer than `most`: then there may be something to mend.
    pub(crate) async fn peek(&self, keys: &Keys, most: Duration) -> Result<Option<Duration>> {
        let request = Request::new("PTTL").arg(keys.main());
        let errand = Errand::Command(keys.bucket, &request);
        let reply = self.route.run(Lane::Work, &errand).await?;
        let left = reply.map_err(translated)?.as_int();
        let left = left.filter(|left| *left > 0).map(i64::unsigned_abs);
        Ok(left.map(Duration::from_millis).filter(|left| *left <= most))
    }

    /// Whether the short way is likely to lead anywhere.
    pub(crate) fn is_short_way_open(&self, keys: &Keys, now: Instant) -> bool {
        self.route.is_one() && !self.contention.is_likely(keys.name(), now)
    }

    /// Runs a script for several mutexes, with a number for each.
    async fn run_short(
        &self,
        script: &Script,
        keys: &[String],
        args: &[Arg<'_>],
        live: &Live,
    ) -> Result<Vec<Short<i64>>> {
        let call = Call {
            script,
            bucket: Bucket::default(), // There is no cluster to find a node of.
            keys,
            args,
            server: None,
        };
        match live.eval(&call, false).await {
            Ok(reply) => {
                let numbers = reply.as_array().unwrap_or_default().iter();
                let number = |reply: &Reply| reply.as_int().ok_or_else(|| odd("a batch"));
                numbers
                    .map(|reply| number(reply).map(Short::Done))
                    .collect()
            }
            Err(Failure::Refused { .. }) => Ok(Vec::new()),
            Err(failure) => Err(translated(failure)),
        }
    }
}

/// The answers of a batch, one after the other; where the server gave none, it refused them all.
fn next(answers: &mut impl Iterator<Item = Short<i64>>) -> Short<i64> {
    answers.next().unwrap_or(Short::LookAgain)
}

impl Joined for Take {
    type Context = Shared;
    type Answer = Short<i64>;

    fn gather(shared: &Shared) -> &Gather<Self> {
        &shared.takes
    }

    async fn send(shared: &Arc<Shared>, takes: Vec<Self>) -> Result<Vec<Short<i64>>> {
        let live = shared.route.live(Lane::Work, Bucket::default()).await?;
        // Where this connection has not vouched for the fences yet, the long way does.
        let open: Vec<bool> = takes
            .iter()
            .map(|take| live.is_confirmed(take.bucket))
            .collect();
        let (mut keys, mut words) = (Vec::new(), Vec::new());
        for (take, _) in takes.into_iter().zip(&open).filter(|(_, open)| **open) {
            keys.extend([take.hold, take.fence]);
            words.push(take.words);
        }
        if keys.is_empty() {
            return Ok(open.iter().map(|_| Short::GoOn).collect());
        }
        let args = words.iter().flat_map(|words| {
            let Words { head, ttl, tail } = words;
            [Arg::Bytes(head), ttl.into(), tail.into()]
        });
        let args: Vec<Arg<'_>> = args.collect();
        let script = &shared.scripts.mutex_take;
        let taken = shared.run_short(script, &keys, &args, &live).await?;
        let mut taken = taken.into_iter();
        let answer = |open| if open { next(&mut taken) } else { Short::GoOn };
        Ok(open.into_iter().map(answer).collect())
    }
}

impl Joined for Leave {
    type Context = Shared;
    type Answer = Short<i64>;

    fn gather(shared: &Shared) -> &Gather<Self> {
        &shared.leaves
    }

    async fn send(shared: &Arc<Shared>, leaves: Vec<Self>) -> Result<Vec<Short<i64>>> {
        let live = shared.route.live(Lane::Work, Bucket::default()).await?;
        let (mut keys, mut heads) = (Vec::new(), Vec::new());
        for leave in leaves {
            keys.extend([leave.hold, leave.queue]);
            heads.push(leave.head);
        }
        let args: Vec<Arg<'_>> = heads.iter().map(|head| Arg::Bytes(head)).collect();
        let script = &shared.scripts.mutex_leave;
        let left = shared.run_short(script, &keys, &args, &live).await?;
        let mut left = left.into_iter();
        Ok(heads.iter().map(|_| next(&mut left)).collect())
    }
}
