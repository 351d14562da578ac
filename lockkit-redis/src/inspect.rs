//! Looking at one resource, for people.

use std::time::Duration;

use lockkit_core::{
    AttemptId, Fence, HoldId, Holder, Label, LatchState, Mode, Order, Primitive, Resource, Result,
    Snapshot, Waiter,
};

use crate::error::odd;
use crate::mode::parse;
use crate::shared::Shared;
use crate::transport::{Lane, Reply};

impl Shared {
    /// See [`Backend::inspect`](lockkit_core::Backend::inspect).
    pub(crate) async fn inspect(&self, resource: &Resource) -> Result<Snapshot> {
        let keys = self.prefix.keys(resource);
        let is_mutex = resource.primitive() == Primitive::Mutex;
        let held = if is_mutex {
            keys.main()
        } else {
            keys.part('h')
        };
        let [x, q, w, z, c] = ['x', 'q', 'w', 'z', 'c'].map(|letter| keys.part(letter));
        let all = [held, x, q, w, z, c, keys.fence()];
        let args = [if is_mutex { "m" } else { "" }.into()];
        let script = &self.scripts.inspect;
        let reply = self
            .eval(Lane::Work, script, &all, &args, keys.bucket)
            .await?;
        snapshot(resource, &reply).ok_or_else(|| odd("an inspection"))
    }
}

fn snapshot(resource: &Resource, reply: &Reply) -> Option<Snapshot> {
    let [now, fence, size, left, of, holders, waiters] = reply.as_array()? else {
        return None;
    };
    let now = now.as_int()?.unsigned_abs();
    let size = number(size)?.and_then(|size| u32::try_from(size).ok());
    let count = |text| Some(number(text)?.and_then(|count| u32::try_from(count).ok()));
    let latch = count(left)?.zip(count(of)?);
    let id = |attempt: &Reply| {
        let attempt = AttemptId::from_bytes(attempt.as_bytes()?)?;
        Some(HoldId::new(resource.clone(), attempt))
    };
    let holders = holders.as_array()?.chunks_exact(3).map(|held| {
        let remaining = Duration::from_millis(held[1].as_int()?.max(0).unsigned_abs());
        holder(id(&held[0])?, &held[2], remaining, size, now)
    });
    let mut holders: Vec<Holder> = holders.collect::<Option<_>>()?;
    // First come first; the server keeps them in the order in which they would end.
    holders.sort_by_key(|held| (std::cmp::Reverse(held.held_for), held.fence));
    let waiters = waiters.as_array()?.chunks_exact(2);
    let waiters = waiters.map(|place| waiter(id(&place[0])?, &place[1], size, now));
    // The counter of a mutex also numbers those in line.
    let fence = match (resource.primitive(), holders.first()) {
        (Primitive::Mutex, Some(holder)) => Some(holder.fence),
        _ => number(fence)?.filter(|fence| *fence > 0).map(Fence::new),
    };
    Some(Snapshot {
        resource: resource.clone(),
        fence,
        holders,
        waiters: waiters.collect::<Option<_>>()?,
        size,
        latch: latch.map(|(left, of)| LatchState { left, of }),
    })
}

/// A number, or none where the text is empty.
fn number(text: &Reply) -> Option<Option<u64>> {
    match text.as_text()? {
        "" => Some(None),
        text => text.parse().ok().map(Some),
    }
}

/// Reads `fence:ttl:since:flags:mode:client:label`; of a mutex without mode.
fn holder(
    id: HoldId,
    record: &Reply,
    remaining: Duration,
    size: Option<u32>,
    now: u64,
) -> Option<Holder> {
    let record = String::from_utf8_lossy(record.as_bytes()?);
    let mut parts = record.splitn(5, ':');
    let fence = parts.next()?.parse().ok()?;
    let _ttl = parts.next()?;
    let since = parts.next()?.parse().ok()?;
    let flags = parts.next()?;
    let mut rest = parts.next()?;
    let mut mode = Mode::Exclusive;
    if id.resource().primitive() != Primitive::Mutex {
        let (written, others) = rest.split_once(':')?;
        mode = parse(written, size)?;
        rest = others;
    }
    let (_client, label) = rest.split_once(':')?;
    Some(Holder {
        id,
        mode,
        fence: Fence::new(fence),
        label: Label::decode(label),
        held_for: since_then(since, now),
        remaining,
        detached: flags.contains('d'),
        asked_to_release: flags.contains('a'),
    })
}

/// Reads `expires:number:ttl:since:flags:mode:client:stamp:label`.
fn waiter(id: HoldId, record: &Reply, size: Option<u32>, now: u64) -> Option<Waiter> {
    let record = String::from_utf8_lossy(record.as_bytes()?);
    let mut parts = record.splitn(9, ':').skip(3);
    let since = parts.next()?.parse().ok()?;
    let flags = parts.next()?;
    let mode = parse(parts.next()?, size)?;
    let (_client, _stamp, label) = (parts.next()?, parts.next()?, parts.next()?);
    Some(Waiter {
        id,
        mode,
        order: if flags.contains('f') {
            Order::Fair
        } else {
            Order::Barging
        },
        label: Label::decode(label),
        waited: since_then(since, now),
    })
}

const fn since_then(since: u64, now: u64) -> Duration {
    Duration::from_millis(now.saturating_sub(since))
}
