//! What the key of a held mutex says: `1`, the attempt in 16 bytes, and
//! `fence:ttl_ms:since_ms:flags:client:label`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lockkit_core::{AttemptId, Claim, Fence, HoldId, Holder, Label, Mode, Resource};

use crate::shared::milliseconds;

/// The version of what is written, and how long it and the attempt are.
const VERSION: u8 = b'1';
const HEAD: usize = 17;

/// A hold, of this strategy or of the direct one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record<'a> {
    pub(super) attempt: AttemptId,
    fence: u64,
    /// The lease in milliseconds.
    pub(super) ttl: u64,
    /// Milliseconds since 1970 by the clock of whoever wrote it, for people.
    since: u64,
    flags: &'a [u8],
    client: &'a [u8],
    label: &'a [u8],
}

impl<'a> Record<'a> {
    /// Reads a value; `None` if it is of another version, or of another program.
    pub(super) fn parse(value: &'a [u8]) -> Option<Self> {
        let (head, tail) = value.split_at_checked(HEAD)?;
        let (version, attempt) = head.split_first()?;
        let mut parts = tail.splitn(6, |byte| *byte == b':');
        let record = Self {
            attempt: AttemptId::from_bytes(attempt)?,
            fence: number(parts.next()?)?,
            ttl: number(parts.next()?)?,
            since: number(parts.next()?)?,
            flags: parts.next()?,
            client: parts.next()?,
            label: parts.next()?,
        };
        (*version == VERSION).then_some(record)
    }

    /// The value of a detached hold, with another lease.
    pub(super) fn detached(&self, ttl: u64) -> Vec<u8> {
        let mut flags = self.flags.to_vec();
        if !flags.contains(&b'd') {
            flags.push(b'd');
        }
        let mut value = vec![VERSION];
        value.extend(self.attempt.as_bytes());
        value.extend(format!("{}:{ttl}:{}:", self.fence, self.since).bytes());
        value.extend([&flags[..], self.client, self.label].join(&b':'));
        value
    }

    /// The hold as operators see it.
    pub(super) fn holder(&self, resource: &Resource, remaining: Duration) -> Holder {
        let held_for = wall_clock_ms().saturating_sub(self.since);
        Holder {
            id: HoldId::new(resource.clone(), self.attempt),
            mode: Mode::Exclusive,
            fence: Fence::new(self.fence),
            label: Label::decode(&String::from_utf8_lossy(self.label)),
            held_for: Duration::from_millis(held_for),
            remaining,
            detached: self.flags.contains(&b'd'),
            asked_to_release: self.flags.contains(&b'a'),
        }
    }
}

/// The value of a new hold: without fence, and of a client that cannot be told anything.
pub(super) fn value_of(claim: &Claim) -> Vec<u8> {
    let mut value = vec![VERSION];
    value.extend(claim.attempt.as_bytes());
    let (ttl, since) = (milliseconds(claim.ttl), wall_clock_ms());
    value.extend(format!("0:{ttl}:{since}:-::{}", claim.label.encode()).bytes());
    value
}

fn number(text: &[u8]) -> Option<u64> {
    str::from_utf8(text).ok()?.parse().ok()
}

/// For people only: no algorithm compares it with another clock.
fn wall_clock_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    milliseconds(since.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockkit_core::{LockName, Order, Primitive};

    #[test]
    fn a_hold_is_read_as_it_was_written() {
        let claim = Claim {
            resource: Resource::new(Primitive::Mutex, LockName::new("n").unwrap()),
            mode: Mode::Exclusive,
            order: Order::Barging,
            ttl: Duration::from_secs(3),
            attempt: AttemptId::random(),
            label: Label::process(),
            wait: false,
        };
        let value = value_of(&claim);
        let record = Record::parse(&value).unwrap();
        assert_eq!((record.attempt, record.ttl), (claim.attempt, 3000));
        let holder = record.holder(&claim.resource, Duration::ZERO);
        assert_eq!((holder.id, holder.label), (claim.id(), claim.label));
        assert!(!holder.detached && holder.held_for < Duration::from_secs(60));

        let value = record.detached(7000);
        let detached = Record::parse(&value).unwrap();
        assert_eq!((detached.ttl, detached.flags), (7000, &b"-d"[..]));
        assert_eq!(detached.detached(7000), value, "only once");
    }

    #[test]
    fn what_others_wrote_is_no_hold() {
        for value in [&b""[..], b"1", b"host-a:17:x:y:z:a:b:c:d", &[b'1'; 40]] {
            assert_eq!(Record::parse(value), None, "{value:?}");
        }
    }
}
