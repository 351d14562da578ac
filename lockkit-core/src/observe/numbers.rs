//! Counters, gauges and histograms. Their names and labels are listed in
//! [`observability`](crate::observability).

use std::time::Duration;

use metrics::{
    Label as Tag, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge,
    histogram,
};

use super::{Counted, Observer, Renewals};
use crate::hold::LossReason;
use crate::{HoldId, Label, Resource, Snapshot};

const ACQUISITIONS: &str = "lockkit_acquisitions_total";
const CONTENTIONS: &str = "lockkit_contentions_total";
const EVICTIONS: &str = "lockkit_evictions_total";
const HOLD: &str = "lockkit_hold_seconds";
const HOLDS: &str = "lockkit_holds";
const LOSSES: &str = "lockkit_losses_total";
const RELEASES: &str = "lockkit_releases_total";
const RENEWALS: &str = "lockkit_renewals_total";
const REVOCATIONS: &str = "lockkit_release_requests_total";
const WAIT: &str = "lockkit_wait_seconds";
const WAITERS: &str = "lockkit_waiters";

/// Tells the recorder units and meanings.
pub(super) fn describe() {
    describe_counter!(ACQUISITIONS, "Acquire calls that have ended, by outcome");
    describe_counter!(CONTENTIONS, "Acquire calls that found somebody before them");
    describe_counter!(EVICTIONS, "Holds that this process took away, by outcome");
    describe_counter!(LOSSES, "Holds lost, by reason");
    describe_counter!(RELEASES, "Answers to releases, by outcome");
    describe_counter!(
        RENEWALS,
        "Answers to renewals of holds and places in line, by outcome"
    );
    describe_counter!(REVOCATIONS, "Holders that this process asked to let go");
    describe_gauge!(HOLDS, "Holds of this process that are watched");
    describe_gauge!(WAITERS, "Places in line of this process");
    describe_histogram!(HOLD, Unit::Seconds, "From grant to release or loss");
    describe_histogram!(WAIT, Unit::Seconds, "From an acquire call to its outcome");
}

/// The labels of what is about one resource.
fn tags<const N: usize>(
    observer: Observer,
    resource: &Resource,
    more: [(&'static str, &'static str); N],
) -> Vec<Tag> {
    let mut tags = Vec::with_capacity(N + 3);
    tags.push(Tag::from_static_parts("backend", observer.backend));
    tags.push(Tag::from_static_parts(
        "primitive",
        resource.primitive().as_str(),
    ));
    if observer.names {
        tags.push(Tag::new("name", resource.name().as_str().to_owned()));
    }
    tags.extend(more.map(|(key, value)| Tag::from_static_parts(key, value)));
    tags
}

pub(super) fn acquired(
    observer: Observer,
    resource: &Resource,
    outcome: &'static str,
    waited: Duration,
) {
    let tags = tags(observer, resource, [("outcome", outcome)]);
    histogram!(WAIT, tags.clone()).record(waited);
    counter!(ACQUISITIONS, tags).increment(1);
}

pub(super) fn contended(observer: Observer, resource: &Resource) {
    counter!(CONTENTIONS, tags(observer, resource, [])).increment(1);
}

pub(super) fn ended(observer: Observer, id: &HoldId, held: Duration, lost: Option<LossReason>) {
    histogram!(HOLD, tags(observer, id.resource(), [])).record(held);
    if let Some(reason) = lost {
        let tags = tags(observer, id.resource(), [("reason", reason.as_str())]);
        counter!(LOSSES, tags).increment(1);
    }
}

pub(super) fn renewed(observer: Observer, renewals: Renewals) {
    for (outcome, count) in [
        ("renewed", renewals.renewed),
        ("gone", renewals.gone),
        ("unknown", renewals.unknown),
    ] {
        if count > 0 {
            let counter = counter!(RENEWALS, "backend" => observer.backend, "outcome" => outcome);
            counter.increment(count);
        }
    }
}

pub(super) fn released(observer: Observer, outcome: &'static str) {
    counter!(RELEASES, "backend" => observer.backend, "outcome" => outcome).increment(1);
}

pub(super) fn counted(observer: Observer, what: Counted, change: i8) {
    let name = match what {
        Counted::Holds => HOLDS,
        Counted::Waiters => WAITERS,
    };
    gauge!(name, "backend" => observer.backend).increment(change);
}

pub(super) fn asked(observer: Observer, resource: &Resource, _: &Label, holders: usize) {
    let tags = tags(observer, resource, []);
    counter!(REVOCATIONS, tags).increment(holders.try_into().unwrap_or(u64::MAX));
}

pub(super) fn evicted(
    observer: Observer,
    id: &HoldId,
    _: &Label,
    _: Option<&Snapshot>,
    outcome: &'static str,
) {
    let tags = tags(observer, id.resource(), [("outcome", outcome)]);
    counter!(EVICTIONS, tags).increment(1);
}
