//! How holders and waiters are shown: to people in words, to programs as JSON.

use std::time::{Duration, SystemTime};

use lockkit::{
    Fence, HoldId, Holder, Label, LatchState, Locker, Mode, Order, Pick, Primitive, Snapshot,
    Waiter,
};
use serde_json::{Map, Value, json};

use crate::duration::{millis, short};
use crate::fence;

/// How many holders a line names.
const NAMED: usize = 4;
/// How many digits of an id tell two holders apart, and are too few to release with.
const SHORT_ID: usize = 8;

/// The beginning of an id: enough to tell holders apart.
pub(crate) fn short_id(id: &HoldId) -> String {
    let mut digits = id.attempt().to_string();
    digits.truncate(SHORT_ID);
    digits
}

/// `nightly (web1:4711) for 3m 2s`, and how it is held if there is more than one way.
pub(crate) fn holder(holder: &Holder) -> String {
    let mut text = format!("{} for {}", holder.label, short(holder.held_for));
    if holder.id.resource().primitive() != Primitive::Mutex {
        text = format!("{text} ({})", holder.mode);
    }
    text
}

/// `held by nightly (web1:4711) for 3m 2s`; `None` if nobody holds it.
pub(crate) fn held_by(snapshot: &Snapshot) -> Option<String> {
    let holders = list(&snapshot.holders.iter().collect::<Vec<_>>(), holder)?;
    Some(format!("held by {holders}"))
}

/// A few of them in a line, and how many more there are; `None` without any.
pub(crate) fn list(holders: &[&Holder], shown: impl Fn(&Holder) -> String) -> Option<String> {
    let named: Vec<_> = holders.iter().take(NAMED).map(|one| shown(one)).collect();
    let more = holders.len() - named.len();
    let mut text = named.join(", ");
    if more > 0 {
        text = format!("{text} and {more} more");
    }
    (!text.is_empty()).then_some(text)
}

/// `2 of 3 to come`, or that it is open or not set.
pub(crate) fn latch(state: Option<LatchState>) -> String {
    match state {
        None => "not set".to_owned(),
        Some(LatchState { left: 0, of }) => format!("open, all {of} have come"),
        Some(LatchState { left, of }) => format!("closed, {left} of {of} to come"),
    }
}

/// One resource, for programs.
pub(crate) fn json(locker: &Locker, snapshot: &Snapshot) -> Value {
    let holder = |holder: &Holder| json_of_holder(holder, fence::of(locker, holder.fence));
    json!({
        "name": snapshot.resource.name().as_str(),
        "kind": snapshot.resource.primitive().as_str(),
        "fence": fence::json(snapshot.fence),
        "size": snapshot.size,
        "latch": snapshot.latch.map(|latch| json!({ "left": latch.left, "of": latch.of })),
        "holders": snapshot.holders.iter().map(holder).collect::<Value>(),
        "waiters": snapshot.waiters.iter().map(json_of_waiter).collect::<Value>(),
    })
}

/// `fields`, and the fields that say how something is held.
pub(crate) fn with_mode(fields: Value, mode: Mode) -> Value {
    let (word, permits, segment) = match mode {
        Mode::Shared => ("shared", None, None),
        Mode::Permits { count, .. } => ("permits", Some(count), None),
        Mode::Segment { pick, .. } => match pick {
            Pick::Only(segment) => ("segment", None, Some(segment)),
            Pick::Any { .. } => ("segment", None, None),
        },
        _ => ("exclusive", None, None),
    };
    let Value::Object(fields) = fields else {
        return fields;
    };
    let mode = [
        ("mode", word.into()),
        ("permits", permits.into()),
        ("segment", segment.into()),
    ];
    let mode = mode.map(|(key, value): (_, Value)| (key.to_owned(), value));
    Value::Object(fields.into_iter().chain(mode).collect::<Map<_, _>>())
}

fn json_of_holder(holder: &Holder, fence: Option<Fence>) -> Value {
    let fields = json!({
        "id": short_id(&holder.id),
        "label": json_of_label(&holder.label),
        "fence": fence::json(fence),
        "since": since(holder.held_for),
        "held_ms": millis(holder.held_for),
        "remaining_ms": millis(holder.remaining),
        "detached": holder.detached,
        "asked_to_release": holder.asked_to_release,
    });
    with_mode(fields, holder.mode)
}

fn json_of_waiter(waiter: &Waiter) -> Value {
    let fields = json!({
        "label": json_of_label(&waiter.label),
        "fair": waiter.order == Order::Fair,
        "since": since(waiter.waited),
        "waited_ms": millis(waiter.waited),
    });
    with_mode(fields, waiter.mode)
}

fn json_of_label(label: &Label) -> Value {
    json!({ "text": label.text(), "host": label.host(), "pid": label.pid() })
}

/// The date and time so long ago, in UTC.
fn since(ago: Duration) -> Option<String> {
    let then = SystemTime::now().checked_sub(ago)?;
    Some(humantime::format_rfc3339_seconds(then).to_string())
}
