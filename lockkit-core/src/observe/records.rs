//! Spans and events. Their targets, names and fields are listed in
//! [`observability`](crate::observability).
//!
//! Ids of holds are capabilities and are never written out.

use std::time::Duration;

use tracing::{Level, Span, debug, debug_span, info, trace, warn};

use super::{Counted, Observer, Renewals};
use crate::acquire::Request;
use crate::hold::LossReason;
use crate::{HoldId, Label, Resource, Snapshot};

/// Who did what to whom: a target of its own, so that it can be kept when all else is dropped.
const AUDIT: &str = "lockkit::audit";
const TARGET: &str = "lockkit";

/// The span in which a claim waits.
pub(super) fn acquire_span(observer: Observer, request: &Request) -> Span {
    debug_span!(
        target: TARGET,
        "acquire",
        backend = observer.backend,
        primitive = request.resource.primitive().as_str(),
        name = request.resource.name().as_str(),
        mode = %request.mode,
    )
}

pub(super) fn acquired(
    observer: Observer,
    resource: &Resource,
    outcome: &'static str,
    waited: Duration,
) {
    debug!(
        target: TARGET,
        backend = observer.backend,
        primitive = resource.primitive().as_str(),
        name = resource.name().as_str(),
        outcome,
        waited = ?waited,
        "acquire ended",
    );
}

pub(super) fn contended(observer: Observer, resource: &Resource) {
    debug!(
        target: TARGET,
        backend = observer.backend,
        primitive = resource.primitive().as_str(),
        name = resource.name().as_str(),
        "somebody is before us",
    );
}

pub(super) fn ended(observer: Observer, id: &HoldId, held: Duration, lost: Option<LossReason>) {
    let (backend, resource) = (observer.backend, id.resource());
    let (primitive, name) = (resource.primitive().as_str(), resource.name().as_str());
    match lost {
        None => debug!(target: TARGET, backend, primitive, name, held = ?held, "let go"),
        Some(reason) => warn!(
            target: TARGET,
            backend,
            primitive,
            name,
            held = ?held,
            reason = reason.as_str(),
            "lost",
        ),
    }
}

pub(super) fn renewed(observer: Observer, renewals: Renewals) {
    let Renewals {
        renewed,
        gone,
        unknown,
    } = renewals;
    let backend = observer.backend;
    if unknown > 0 {
        warn!(target: TARGET, backend, renewed, gone, unknown, "renewals not confirmed");
    } else {
        trace!(target: TARGET, backend, renewed, gone, "renewed");
    }
}

pub(super) fn released(observer: Observer, outcome: &'static str) {
    trace!(target: TARGET, backend = observer.backend, outcome, "release answered");
}

pub(super) const fn counted(_: Observer, _: Counted, _: i8) {}

pub(super) fn asked(observer: Observer, resource: &Resource, by: &Label, holders: usize) {
    info!(
        target: AUDIT,
        backend = observer.backend,
        primitive = resource.primitive().as_str(),
        name = resource.name().as_str(),
        by = %by,
        holders,
        "release requested",
    );
}

pub(super) fn audits() -> bool {
    tracing::enabled!(target: AUDIT, Level::WARN)
}

pub(super) fn evicted(
    observer: Observer,
    id: &HoldId,
    by: &Label,
    before: Option<&Snapshot>,
    outcome: &'static str,
) {
    let holder = before.and_then(|snapshot| snapshot.holders.iter().find(|held| held.id == *id));
    warn!(
        target: AUDIT,
        backend = observer.backend,
        primitive = id.resource().primitive().as_str(),
        name = id.resource().name().as_str(),
        by = %by,
        holder = holder.map(|holder| tracing::field::display(&holder.label)),
        fence = holder.map(|holder| holder.fence.get()),
        outcome,
        "evicted",
    );
}
