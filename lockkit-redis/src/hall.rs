//! Read-write locks, semaphores and segmented locks: several holders of one name, and a line.
//!
//! What is stored is described in `lua/hall.lua`.

use std::time::Duration;

use lockkit_core::{Claim, Fence, HoldId, Instant, Mode, Released, Renewal, Resource, Result};

use crate::by_kind::Asked;
use crate::error::odd;
use crate::key::Keys;
use crate::mode::{size_text, text};
use crate::mutex::{Answer, order_flag, released};
use crate::renew::in_order;
use crate::shared::{HALLS, Shared, milliseconds, stamp};
use crate::transport::{Arg, Lane, Reply};

impl Shared {
    /// Takes a hold or a place in line.
    pub(crate) async fn attempt_hall(
        &self,
        claim: &Claim,
        asked: Asked,
        sent_at: Instant,
    ) -> Result<Answer> {
        let keys = self.prefix.keys(&claim.resource);
        self.listen(claim, keys.bucket).await?;
        let ttl = milliseconds(claim.ttl).to_string();
        let (mode, size) = (text(claim.mode), size_text(claim.mode));
        let (inbox, label) = (self.inbox_of(&keys), claim.label.encode());
        let stamp = stamp(sent_at);
        let args = [
            (&claim.attempt).into(),
            (&ttl).into(),
            (&mode).into(),
            order_flag(claim.order).into(),
            if claim.wait { "w" } else { "" }.into(),
            (&size).into(),
            Arg::Run,
            (&inbox).into(),
            self.inbox.reachable_as().into(),
            (&label).into(),
            (&stamp).into(),
        ];
        let script = asked.choose(&self.scripts.attempt, &self.scripts.attempt_again);
        let reply = self
            .eval(Lane::Work, script, &hall_keys(&keys), &args, keys.bucket)
            .await?;
        answer(&reply, claim.mode)
    }

    /// Lets a hold or a place in line go, also one before a latch; `evicted` to tell the holder that an
    /// operator took it.
    pub(crate) async fn release_hall(&self, id: &HoldId, evicted: bool) -> Result<Released> {
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
        let script = &self.scripts.release;
        let reply = self
            .eval(Lane::Work, script, &hall_keys(&keys), &args, keys.bucket)
            .await?;
        released(&reply)
    }

    /// Renews holds and places in line, also before latches, many at a time.
    pub(crate) async fn renew_halls(&self, lane: Lane, ids: &[&HoldId]) -> Vec<Renewal> {
        let batches = self
            .batches(ids, HALLS)
            .into_iter()
            .map(|batch| async move {
                let keys = batch.iter().flat_map(|&at| {
                    let keys = self.prefix.keys(ids[at].resource());
                    ['h', 'x', 'q', 'w'].map(|letter| keys.part(letter))
                });
                let keys: Vec<String> = keys.collect();
                let script = &self.scripts.renew;
                let renewals = self
                    .renew_batch(lane, script, true, &keys, &batch, ids)
                    .await;
                (batch, renewals)
            });
        in_order(ids.len(), futures_util::future::join_all(batches).await)
    }

    /// See [`Backend::extend`](lockkit_core::Backend::extend).
    pub(crate) async fn extend_hall(&self, id: &HoldId, ttl: Duration) -> Result<Option<Duration>> {
        let keys = self.prefix.keys(id.resource());
        let attempt = id.attempt();
        let millis = milliseconds(ttl).to_string();
        let args = [(&attempt).into(), (&millis).into()];
        let script = &self.scripts.extend;
        let parts = [keys.part('h'), keys.part('x')];
        let reply = self
            .eval(Lane::Work, script, &parts, &args, keys.bucket)
            .await?;
        match reply.as_int() {
            Some(0) => Ok(None),
            Some(millis) => Ok(Some(Duration::from_millis(millis.unsigned_abs()))),
            None => Err(odd("an extension")),
        }
    }

    /// See [`Backend::request_release`](lockkit_core::Backend::request_release).
    pub(crate) async fn request_hall(&self, resource: &Resource) -> Result<usize> {
        let keys = self.prefix.keys(resource);
        let (inbox, named) = (self.inbox_of(&keys), resource.key());
        let args = [(&inbox).into(), (&named).into()];
        let script = &self.scripts.request;
        let parts = [keys.part('h'), keys.part('x')];
        let reply = self
            .eval(Lane::Work, script, &parts, &args, keys.bucket)
            .await?;
        let count = reply.as_int().and_then(|count| count.try_into().ok());
        count.ok_or_else(|| odd("a request to let go"))
    }
}

/// The keys of a resource that several hold, in the order of the scripts.
pub(crate) fn hall_keys(keys: &Keys) -> [String; 7] {
    [
        keys.part('h'),
        keys.part('x'),
        keys.part('q'),
        keys.part('w'),
        keys.part('z'),
        keys.fence(),
        keys.server(),
    ]
}

/// Reads the reply of an attempt.
fn answer(reply: &Reply, mode: Mode) -> Result<Answer> {
    match reply {
        Reply::Int(fence @ 0..) => Ok(Answer::Held {
            fence: Fence::new(fence.unsigned_abs()),
            segment: None,
        }),
        Reply::Int(left) => Ok(Answer::Busy(Duration::from_millis(left.unsigned_abs()))),
        Reply::Array(items) => match &items[..] {
            [Reply::Int(fence), Reply::Int(segment)] => Ok(Answer::Held {
                fence: Fence::new(fence.unsigned_abs()),
                segment: u32::try_from(*segment).ok(),
            }),
            [Reply::Bytes(word), stored] => Err(wrong_size(word, stored, mode)),
            _ => Err(odd("an attempt")),
        },
        _ => Err(odd("an attempt")),
    }
}

/// The error of a claim that expects another size than the stored one.
pub(crate) fn wrong_size(word: &[u8], stored: &Reply, mode: Mode) -> lockkit_core::Error {
    let stored = stored.as_text().and_then(|stored| stored.parse().ok());
    let checked = match (word, stored) {
        (b"MISMATCH", Some(stored)) => mode.check_size(stored),
        (b"LOWERED", Some(stored)) => mode.check_fits(stored),
        _ => Ok(()),
    };
    match checked {
        Err(error) => error.on(crate::descriptor::DRIVER),
        Ok(()) => odd("an attempt"),
    }
}

#[cfg(test)]
mod tests {
    /// A server of 6.2 says of a table only that it cannot be joined to a text.
    #[test]
    fn no_script_raises_what_an_old_server_cannot_pass_on() {
        let scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/src/lua");
        for script in std::fs::read_dir(scripts).unwrap() {
            let path = script.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(!text.contains("error({"), "{}", path.display());
        }
    }
}
