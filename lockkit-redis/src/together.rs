//! Several resources at once: all, or none.

use lockkit_core::{Claim, Clock, Fence, Grant, Instant, Primitive, Result, Together};

use crate::error::odd;
use crate::hall::{hall_keys, wrong_size};
use crate::key::Keys;
use crate::mode::{size_text, text};
use crate::mutex::order_flag;
use crate::shared::{Shared, milliseconds};
use crate::transport::{Arg, Lane, Reply};

/// The arguments of one claim that are made for the request.
struct Texts {
    keys: Keys,
    ttl: String,
    mode: String,
    size: String,
    label: String,
}

impl Shared {
    /// See [`Backend::attempt_all`](lockkit_core::Backend::attempt_all).
    pub(crate) async fn attempt_all(&self, claims: &[Claim]) -> Result<Together> {
        let texts: Vec<Texts> = claims.iter().map(|claim| self.texts(claim)).collect();
        let Some(first) = texts.first() else {
            return Ok(Together::Held(Vec::new()));
        };
        let bucket = first.keys.bucket;
        let is_one = self.route.is_one() || texts.iter().all(|text| text.keys.bucket == bucket);
        let is_latch = |claim: &Claim| claim.resource.primitive() == Primitive::Latch;
        if !is_one || claims.iter().any(is_latch) {
            return Ok(Together::OneByOne);
        }
        self.listen(&claims[0], bucket).await?;
        let keys = claims.iter().zip(&texts).flat_map(|(claim, text)| {
            let mut keys = hall_keys(&text.keys);
            if claim.resource.primitive() == Primitive::Mutex {
                keys[0] = text.keys.main();
            }
            keys
        });
        let keys: Vec<String> = keys.collect();
        let inbox = self.inbox_of(&first.keys);
        let mut args: Vec<Arg<'_>> = vec![(&inbox).into(), self.inbox.reachable_as().into()];
        for (claim, text) in claims.iter().zip(&texts) {
            args.extend([
                Arg::from(&claim.attempt),
                (&text.ttl).into(),
                (&text.mode).into(),
                order_flag(claim.order).into(),
                (&text.size).into(),
                Arg::RunOf(text.keys.bucket),
                (&text.label).into(),
            ]);
        }
        let sent_at = Clock::Boot.now();
        let script = &self.scripts.together;
        let reply = self.eval(Lane::Work, script, &keys, &args, bucket).await?;
        outcome(&reply, claims, sent_at)
    }

    fn texts(&self, claim: &Claim) -> Texts {
        Texts {
            keys: self.prefix.keys(&claim.resource),
            ttl: milliseconds(claim.ttl).to_string(),
            mode: match claim.resource.primitive() {
                Primitive::Mutex => "m".into(),
                _ => text(claim.mode),
            },
            size: size_text(claim.mode),
            label: claim.label.encode(),
        }
    }
}

fn outcome(reply: &Reply, claims: &[Claim], sent_at: Instant) -> Result<Together> {
    let odd = || odd("an attempt at several");
    let items = reply.as_array().ok_or_else(odd)?;
    if items.is_empty() {
        return Ok(Together::Busy);
    }
    if let [Reply::Bytes(word), stored, Reply::Int(which)] = items {
        let claim = usize::try_from(*which - 1)
            .ok()
            .and_then(|at| claims.get(at))
            .ok_or_else(odd)?;
        return Err(wrong_size(word, stored, claim.mode));
    }
    if items.len() != 2 * claims.len() {
        return Err(odd());
    }
    let grants = items.chunks_exact(2).zip(claims).map(|(items, claim)| {
        let [Reply::Int(fence), Reply::Int(segment)] = items else {
            return Err(odd());
        };
        Ok(Grant {
            fence: Fence::new(fence.unsigned_abs()),
            sent_at,
            ttl: claim.ttl,
            segment: u32::try_from(*segment).ok(),
        })
    });
    Ok(Together::Held(grants.collect::<Result<_>>()?))
}
