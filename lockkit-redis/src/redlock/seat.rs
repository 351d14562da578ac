//! A node as a voter.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lockkit_core::{Error, HoldId, Resource, Result};

use super::admission::Admission;
use super::ballot::Proposed;
use super::keys::bucket;
use super::peer::{Peer, forgetful, numbers};
use super::record::read;
use super::voter::{Bid, Freed, Kept, Known, Record, Voter, Which};
use crate::error::{odd, translated};
use crate::transport::{Arg, Lane, Request};

/// How many keys a server looks at in one step of a scan.
const STEP: &str = "1000";

/// One node of the council.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) peer: Arc<Peer>,
    pub(crate) admission: Arc<Admission>,
}

impl Seat {
    fn keys(&self, resource: &Resource) -> [String; 2] {
        [self.peer.keys.hold(resource), self.peer.keys.node()]
    }

    fn forgotten<T>(&self) -> Result<T> {
        self.admission.met_forgetful();
        Err(forgetful())
    }

    /// Runs a script that answers with a number.
    async fn number(
        &self,
        script: &crate::script::Script,
        resource: &Resource,
        args: &[Arg<'_>],
    ) -> Result<i64> {
        let keys = self.keys(resource);
        let reply = self.peer.eval(Lane::Work, script, &keys, args).await?;
        match reply.as_int() {
            Some(0) => self.forgotten(),
            Some(number) => Ok(number),
            None => Err(odd("a script")),
        }
    }
}

#[async_trait]
impl Voter for Seat {
    fn named(&self, error: Error) -> Error {
        self.peer.named(&error)
    }

    async fn ready(&self) -> Result<()> {
        self.peer.node.live(Lane::Work).await.map(drop)
    }

    async fn propose(&self, bid: &Bid) -> Result<Proposed> {
        let resource = bid.id.resource();
        let (attempt, bucket) = (bid.id.attempt(), bucket(resource));
        let (ttl, round) = (millis(bid.ttl), bid.round.to_string());
        let args = [
            (&attempt).into(),
            (&ttl).into(),
            (&round).into(),
            (&bucket).into(),
            (&bid.tail).into(),
        ];
        let (script, keys) = (&self.peer.scripts.propose, self.keys(resource));
        let reply = self.peer.eval(Lane::Work, script, &keys, &args).await?;
        match numbers(&reply)[..] {
            [0] => self.forgotten(),
            [1, counter, token] => Ok(Proposed::Ours { counter, token }),
            [2, counter, _] => Ok(Proposed::Theirs { counter }),
            _ => Err(odd("a proposal")),
        }
    }

    async fn confirm(&self, bid: &Bid, token: u64) -> Result<bool> {
        let resource = bid.id.resource();
        let (attempt, bucket) = (bid.id.attempt(), bucket(resource));
        let (ttl, round) = (millis(bid.ttl), bid.round.to_string());
        let token = token.to_string();
        let args = [
            (&attempt).into(),
            (&ttl).into(),
            (&round).into(),
            (&bucket).into(),
            (&token).into(),
        ];
        let script = &self.peer.scripts.confirm;
        Ok(self.number(script, resource, &args).await? == 1)
    }

    async fn renew(&self, ids: &[HoldId]) -> Result<Vec<Option<Kept>>> {
        let mut keys = vec![self.peer.keys.node()];
        keys.extend(ids.iter().map(|id| self.peer.keys.hold(id.resource())));
        let attempts: Vec<_> = ids.iter().map(HoldId::attempt).collect();
        let args: Vec<Arg<'_>> = attempts.iter().map(Arg::from).collect();
        let script = &self.peer.scripts.renew;
        let reply = self.peer.eval(Lane::Renewals, script, &keys, &args).await?;
        let answers = reply.as_array().unwrap_or_default();
        if answers.is_empty() {
            return self.forgotten();
        }
        let answers = answers.iter().map(|answer| match answer.as_text() {
            Some("") => Ok(None),
            Some(text) => kept(text).map(Some).ok_or_else(|| odd("a renewal")),
            None => Err(odd("a renewal")),
        });
        answers.collect()
    }

    async fn repair(&self, id: &HoldId, record: &Record) -> Result<bool> {
        let (attempt, bucket) = (id.attempt(), bucket(id.resource()));
        let (ttl, token) = (millis(record.remaining), record.token.to_string());
        let args = [
            (&attempt).into(),
            (&ttl).into(),
            (&bucket).into(),
            (&token).into(),
            Arg::Bytes(&record.stored),
        ];
        let script = &self.peer.scripts.repair;
        Ok(self.number(script, id.resource(), &args).await? == 1)
    }

    async fn extend(&self, id: &HoldId, ttl: Duration) -> Result<Option<u64>> {
        let (attempt, ttl) = (id.attempt(), millis(ttl));
        let args = [(&attempt).into(), (&ttl).into()];
        let script = &self.peer.scripts.extend;
        let token = self.number(script, id.resource(), &args).await?;
        Ok(u64::try_from(token).ok())
    }

    async fn release(&self, id: &HoldId, which: Which) -> Result<Freed> {
        let attempt = id.attempt();
        let round = match which {
            Which::UpTo(round) => round.to_string(),
            Which::All | Which::Evicted => String::new(),
        };
        let named = match which {
            Which::Evicted => id.resource().key(),
            Which::All | Which::UpTo(_) => String::new(),
        };
        let inbox = self.peer.keys.inbox();
        let args = [
            (&attempt).into(),
            (&round).into(),
            (&inbox).into(),
            (&named).into(),
        ];
        let (script, keys) = (
            &self.peer.scripts.release,
            [self.peer.keys.hold(id.resource())],
        );
        let reply = self.peer.eval_always(script, &keys, &args).await?;
        match reply.as_int() {
            Some(0) => Ok(Freed::Nothing),
            Some(1) => Ok(Freed::Confirmed),
            Some(2) => Ok(Freed::Taken),
            _ => Err(odd("a release")),
        }
    }

    async fn request(&self, resource: &Resource) -> Result<Option<u64>> {
        let (inbox, named) = (self.peer.keys.inbox(), resource.key());
        let args = [(&inbox).into(), (&named).into()];
        let (script, keys) = (&self.peer.scripts.request, [self.peer.keys.hold(resource)]);
        let reply = self.peer.eval_always(script, &keys, &args).await?;
        let token = reply.as_int().and_then(|token| u64::try_from(token).ok());
        let token = token.ok_or_else(|| odd("a request to let go"))?;
        Ok((token > 0).then_some(token))
    }

    async fn inspect(&self, resource: &Resource) -> Result<Known> {
        let bucket = bucket(resource);
        let (script, keys) = (&self.peer.scripts.inspect, self.keys(resource));
        let args = [(&bucket).into()];
        let reply = self.peer.eval_always(script, &keys, &args).await?;
        let parse = || {
            let [stored, left, counter] = reply.as_array()? else {
                return None;
            };
            let stored = stored.as_bytes()?.to_vec();
            let left = Duration::from_millis(u64::try_from(left.as_int()?.max(0)).ok()?);
            let hold = match stored.is_empty() {
                true => None,
                false => Some(read(stored, left)?),
            };
            let counter = u64::try_from(counter.as_int()?).ok()?;
            Some(Known { hold, counter })
        };
        parse().ok_or_else(|| odd("what it knows"))
    }

    async fn names(&self) -> Result<Vec<Resource>> {
        let live = self.peer.node.live(Lane::Work).await?;
        let pattern = self.peer.keys.pattern();
        let mut names = Vec::new();
        let mut cursor = String::from("0");
        loop {
            let request = Request::new("SCAN").arg(&cursor);
            let request = request.args(["MATCH", &pattern, "COUNT", STEP]);
            let reply = live.send(&request).await.map_err(translated)?;
            let Some([next, keys]) = reply.as_array() else {
                return Err(odd("a scan"));
            };
            let keys = keys.as_array().unwrap_or_default();
            let found = keys.iter().filter_map(|key| key.as_text());
            names.extend(found.filter_map(|key| self.peer.keys.resource_of(key)));
            cursor = next.as_text().unwrap_or("0").to_owned();
            if cursor == "0" {
                return Ok(names);
            }
        }
    }
}

/// A lease as scripts take it.
fn millis(ttl: Duration) -> String {
    ttl.as_millis().max(1).to_string()
}

/// Reads `token:lease:flags`.
fn kept(text: &str) -> Option<Kept> {
    let mut fields = text.splitn(3, ':');
    let (token, ttl) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(Kept {
        token,
        ttl: Duration::from_millis(ttl),
        asked: fields.next()?.contains('a'),
    })
}
