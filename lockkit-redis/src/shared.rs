//! What tickets and calls of one backend share.

use std::time::Duration;

use lockkit_core::{Claim, Clock, HoldId, Instant, Renewal, Result};

use crate::config::Options;
use crate::contention::Contention;
use crate::error::{odd, repeat};
use crate::gather::Gather;
use crate::inbox::Inbox;
use crate::key::{Bucket, Keys, Prefix};
use crate::renew::Lease;
use crate::script::Script;
use crate::scripts::Scripts;
use crate::short::{Leave, Take};
use crate::transport::{Arg, Call, Lane, Reply, Route};

/// How many holds of mutexes one script renews: enough to share its cost, few enough that the server,
/// which does one thing at a time, is done with it in about a millisecond.
pub(crate) const MUTEXES: usize = 200;

/// The same for what is kept in several keys, which costs several times as much.
pub(crate) const HALLS: usize = 64;

/// One backend.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) route: Route,
    pub(crate) prefix: Prefix,
    pub(crate) scripts: Scripts,
    pub(crate) inbox: std::sync::Arc<Inbox>,
    pub(crate) options: Options,
    pub(crate) contention: Contention,
    pub(crate) takes: Gather<Take>,
    pub(crate) leaves: Gather<Leave>,
}

impl Shared {
    /// Runs a script where the keys of a bucket are.
    pub(crate) async fn eval(
        &self,
        lane: Lane,
        script: &Script,
        keys: &[String],
        args: &[Arg<'_>],
        bucket: Bucket,
    ) -> Result<Reply> {
        let call = Call {
            script,
            bucket,
            keys,
            args,
            server: None,
        };
        self.route.eval(lane, &call).await
    }

    /// Makes sure that what is said to a claim, and to the hold that it may become, is heard.
    pub(crate) async fn listen(&self, claim: &Claim, bucket: Bucket) -> Result<()> {
        match self.route.listen(bucket).await {
            // Who does not wait hears only what operators say; that is no reason to fail.
            Err(_) if !claim.wait => Ok(()),
            listening => listening,
        }
    }

    /// What the channel of a client begins with, for a script that works on these keys.
    pub(crate) fn inbox_of(&self, keys: &Keys) -> String {
        let bucket = (!self.route.is_one()).then_some(keys.bucket);
        self.prefix.inbox(bucket, "")
    }

    /// Parts ids, by their places in a list, so that one script can renew the keys of each part.
    pub(crate) fn batches(&self, ids: &[&HoldId], most: usize) -> Vec<Vec<usize>> {
        let mut places: Vec<usize> = (0..ids.len()).collect();
        if self.route.is_one() {
            return places.chunks(most).map(<[usize]>::to_vec).collect();
        }
        let bucket = |at: &usize| self.prefix.keys(ids[*at].resource()).bucket;
        places.sort_by_key(bucket);
        let buckets = places.chunk_by(|one, other| bucket(one) == bucket(other));
        buckets
            .flat_map(|bucket| bucket.chunks(most))
            .map(<[usize]>::to_vec)
            .collect()
    }

    /// Renews one batch by a script that takes the attempts, after a stamp if it is also about places in
    /// line, and gives a [`Lease`] for each: more than 0 for a hold, less for a place, 0 for what is
    /// gone. A hold that the server has in line is gone, too: a server that took over, or started
    /// anew, has forgotten that it was let in.
    pub(crate) async fn renew_batch(
        &self,
        lane: Lane,
        script: &Script,
        stamped: bool,
        keys: &[String],
        batch: &[usize],
        ids: &[&HoldId],
    ) -> Vec<Renewal> {
        let attempts: Vec<_> = batch.iter().map(|&at| ids[at].attempt()).collect();
        let bucket = self.prefix.keys(ids[batch[0]].resource()).bucket;
        let sent_at = Clock::Boot.now();
        let stamp = stamped.then(|| stamp(sent_at));
        let args = stamp.iter().map(Arg::from);
        let args: Vec<Arg<'_>> = args.chain(attempts.iter().map(Arg::from)).collect();
        // Else an operator could not reach the holder any more where its slot has moved.
        self.route.keep_listening(bucket);
        let reply = self.eval(lane, script, keys, &args, bucket).await;
        let reply = match reply {
            Ok(reply) => reply,
            Err(error) => {
                let unknown = |_: &usize| Renewal::Unknown(repeat(&error));
                return batch.iter().map(unknown).collect();
            }
        };
        let leases = reply.as_array().unwrap_or_default();
        let renewals = batch.iter().zip(leases).map(|(&at, lease)| {
            let Some(Lease { lease, has_news }) = Lease::read(lease) else {
                return Renewal::Unknown(odd("a renewal"));
            };
            let standing = self.inbox.standing(ids[at].attempt());
            if let Some(standing) = &standing
                && (lease > 0 || has_news)
            {
                // It was let in, and the message about it may be lost; or whoever kept it waiting has
                // died, which no message tells.
                standing.news.notify_one();
            }
            if lease > 0 && has_news {
                self.inbox.asked(ids[at]);
            }
            match lease {
                0 => Renewal::Gone,
                ..0 if standing.is_none() => Renewal::Gone,
                lease => Renewal::Renewed {
                    sent_at,
                    ttl: Duration::from_millis(lease.unsigned_abs()),
                },
            }
        });
        renewals.collect()
    }
}

/// A lease as scripts take it.
pub(crate) fn milliseconds(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)
}

/// A moment on our own clock, for a server to keep with a place in line.
pub(crate) fn stamp(sent_at: Instant) -> String {
    sent_at.as_nanos().to_string()
}
