//! A hold as nodes store it: `1`, the attempt in 16 bytes, then
//! `token:round:base:lease:since:flags:client:label`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lockkit_core::{AttemptId, Fence, HoldId, Holder, Label, Mode, Resource};

use super::voter::Record;

/// What a claim says of itself: since when, no flags yet, how to reach it and who it is.
pub(crate) fn tail(client: &str, label: &Label) -> String {
    format!("{}:-:{client}:{}", wall_clock_ms(), label.encode())
}

/// Reads a stored hold; `None` if it is of another version.
pub(crate) fn read(stored: Vec<u8>, remaining: Duration) -> Option<Record> {
    let (version, rest) = stored.split_first()?;
    let (attempt, rest) = rest.split_at_checked(16)?;
    if *version != b'1' {
        return None;
    }
    let attempt = AttemptId::from_bytes(attempt)?;
    let end = rest.iter().position(|byte| *byte == b':')?;
    let token = str::from_utf8(&rest[..end]).ok()?.parse().ok()?;
    Some(Record {
        attempt,
        token,
        remaining,
        stored,
    })
}

/// Who a stored hold is, for people.
pub(crate) fn holder(resource: &Resource, record: &Record) -> Option<Holder> {
    let text = str::from_utf8(record.stored.get(17..)?).ok()?;
    let mut fields = text.splitn(8, ':').skip(4);
    let (since, flags) = (fields.next()?.parse().ok()?, fields.next()?);
    let (_client, label) = (fields.next()?, fields.next()?);
    Some(Holder {
        id: HoldId::new(resource.clone(), record.attempt),
        mode: Mode::Exclusive,
        fence: Fence::new(record.token),
        label: Label::decode(label),
        held_for: Duration::from_millis(wall_clock_ms().saturating_sub(since)),
        remaining: record.remaining,
        detached: flags.contains('d'),
        asked_to_release: flags.contains('a'),
    })
}

/// For people only: no rule compares it with another clock.
fn wall_clock_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}
