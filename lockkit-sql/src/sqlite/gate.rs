//! Attempts to hold.

use std::sync::Arc;
use std::time::Duration;

use lockkit_core::{Attempt, Claim, Clock, Fence, Grant, Order, Primitive};

use super::connection::Connection;
use super::error::Fault;
use super::registry::{Place, Waiting};
use super::session::{Session, millis, remaining, ttl_ms};
use super::transaction::Transaction;
use super::view::{Holder, View, may_take};

/// One attempt.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) claim: Arc<Claim>,
    pub(super) key: Arc<str>,
    /// Set if the claim may wait.
    pub(super) waiting: Option<Arc<Waiting>>,
    /// Whether an earlier attempt may have taken effect.
    pub(super) again: bool,
}

/// What a transaction or a look found.
pub(super) enum Found {
    /// Under a session, with a fence, and which segment it is.
    Held(Arc<Session>, i64, Option<u32>),
    /// The latch is open.
    Passed,
    Busy {
        until: Option<i64>,
        place: Option<(Arc<Session>, Place)>,
    },
    /// Only a transaction can tell.
    Unclear,
}

/// Takes a free lock, then tells whether it is ours. `RETURNING` would tell as much, but before
/// the commit: its row wakes us in the middle of the sync to disk, which costs more than a second
/// statement in the same request.
const TAKE: &str = "
UPDATE lockkit_lock SET session = ?2, attempt = ?3, fence = fence + 1, since = ?4, label = ?5
 WHERE key = ?1 AND attempt IS NULL AND (queued = 0 OR ?6)
   AND EXISTS (SELECT 1 FROM lockkit_session WHERE id = ?2);
SELECT fence FROM lockkit_lock WHERE key = ?1 AND session = ?2 AND attempt = ?3";

impl Connection {
    /// Tries to hold: by single statements where they are enough, by a transaction otherwise.
    pub(super) async fn attempt(&mut self, ask: &Ask) -> Result<Attempt, Fault> {
        if ask.claim.resource.primitive() != Primitive::Mutex {
            return self.attempt_shared(ask).await;
        }
        let mut found = Found::Unclear;
        if ask.again || ask.waiting.is_none() {
            found = self.look(ask).await?;
        }
        if matches!(found, Found::Unclear) && !ask.is_queued() {
            found = self.take(ask).await?;
        }
        if matches!(found, Found::Unclear) {
            let mut transaction = self.begin().await?;
            let decided = decide(&mut transaction, ask).await;
            found = transaction.end(decided).await?;
        }
        Ok(self.note(ask, found))
    }

    /// The free, uncontended lock: one statement.
    async fn take(&mut self, ask: &Ask) -> Result<Found, Fault> {
        let Ask { claim, key, .. } = ask;
        let registry = &self.shared().registry;
        let session = registry
            .session(ttl_ms(claim.ttl))
            .filter(|session| session.is_fresh());
        let Some(session) = session else {
            return Ok(Found::Unclear);
        };
        let write = self.write().await?;
        if !session.is_fresh() {
            // It took long until our turn came.
            return Ok(Found::Unclear);
        }
        // To the end: an error while committing must not be missed.
        let granted: Vec<(i64,)> = sqlx::query_as(TAKE)
            .bind(&**key)
            .bind(session.id.as_bytes())
            .bind(claim.attempt.as_bytes().as_slice())
            .bind(millis(write.now))
            .bind(claim.label.encode())
            .bind(claim.order == Order::Barging)
            .fetch_all(&mut *write.sql)
            .await?;
        Ok(granted.first().map_or(Found::Unclear, |(fence,)| {
            Found::Held(session, *fence, None)
        }))
    }

    /// What can be told by reading alone: that it is ours already, or that it is still not our
    /// turn.
    pub(super) async fn look(&mut self, ask: &Ask) -> Result<Found, Fault> {
        let Ask {
            claim,
            key,
            waiting,
            ..
        } = ask;
        let shared = self.shared();
        let session = shared.registry.session(ttl_ms(claim.ttl));
        let view = View::read(self.read().await?, key, ask.ticket(), claim.attempt).await?;
        let Some(view) = view else {
            return Ok(Found::Unclear);
        };
        let now_ms = millis(Clock::Boot.now());
        match view.holder() {
            Holder::Session(holder, Some(_)) if view.is_held_by(claim.attempt) => {
                return Ok(match session {
                    Some(session) if holder == Some(session.id) && !session.is_over() => {
                        Found::Held(session, view.fence, None)
                    }
                    _ => Found::Unclear,
                });
            }
            Holder::Session(Some(holder), until) if !shared.is_dead(holder, until, now_ms) => {}
            Holder::Detached(until) if until > now_ms => {}
            Holder::Nobody if waiting.is_none() => {
                let before = view.before_session();
                let passes = may_take(false, before.is_some(), claim.order);
                let blocked =
                    before.is_some_and(|before| !shared.is_dead(before, view.before_until, now_ms));
                return Ok(if blocked && !passes {
                    Found::Busy {
                        until: view.before_until,
                        place: None,
                    }
                } else {
                    Found::Unclear
                });
            }
            _ => return Ok(Found::Unclear),
        }
        if waiting.is_none() {
            return Ok(Found::Busy {
                until: view.held_until(),
                place: None,
            });
        }
        // Still in line, and everybody before us is what we took it to be?
        let (Some(session), Some(ticket)) = (session, ask.ticket()) else {
            return Ok(Found::Unclear);
        };
        let Some(rung) = view.place(session.id) else {
            return Ok(Found::Unclear);
        };
        let before_is_dead = view.before.is_some()
            && view
                .before_session()
                .is_none_or(|before| shared.is_dead(before, view.before_until, now_ms));
        if before_is_dead {
            return Ok(Found::Unclear);
        }
        Ok(busy(&view, session, ticket, rung))
    }

    /// Writes down locally what has been found.
    pub(super) fn note(&self, ask: &Ask, found: Found) -> Attempt {
        let shared = self.shared();
        match found {
            Found::Held(session, fence, segment) => {
                let grant = session.grant(fence, segment);
                shared.registry.hold(ask.claim.id(), session);
                if shared.bell.is_deaf() && shared.registry.counts().holding == 1 {
                    // From now on there may be news to look for.
                    shared.bell.stirred.notify_one();
                }
                Attempt::Held(grant)
            }
            Found::Passed => {
                // Nothing is left that could be renewed or lost.
                shared.registry.forget(ask.claim.attempt);
                Attempt::Held(Grant {
                    fence: Fence::new(0),
                    sent_at: Clock::Boot.now(),
                    ttl: ask.claim.ttl,
                    segment: None,
                })
            }
            Found::Busy { until, place } => {
                if let (Some(waiting), Some((session, mut place))) = (&ask.waiting, place) {
                    place.behind.retain(|id| !shared.registry.owns(*id));
                    waiting.stand(Some(place));
                    shared.registry.stand(ask.claim.attempt, &session);
                }
                let now_ms = millis(Clock::Boot.now());
                Attempt::Busy {
                    recheck_after: until.map(|until| remaining(now_ms, until)),
                }
            }
            // A transaction always decides; trying again at once would be harmless.
            Found::Unclear => Attempt::Busy {
                recheck_after: Some(Duration::ZERO),
            },
        }
    }
}

impl Ask {
    pub(super) fn ticket(&self) -> Option<i64> {
        self.waiting.as_ref()?.place().map(|place| place.ticket)
    }

    fn is_queued(&self) -> bool {
        self.ticket().is_some()
    }
}

/// The whole decision, with nobody else writing.
pub(super) async fn decide(transaction: &mut Transaction<'_>, ask: &Ask) -> Result<Found, Fault> {
    let Ask {
        claim,
        key,
        waiting,
        ..
    } = ask;
    let session = transaction.session(ttl_ms(claim.ttl)).await?;
    let mut ticket = ask.ticket();
    let mut view = loop {
        let view = View::read(transaction.sql, key, ticket, claim.attempt).await?;
        let Some(view) = view else {
            transaction.insert_lock(key).await?;
            continue;
        };
        match view.holder() {
            Holder::Session(holder, _)
                if view.is_held_by(claim.attempt) && holder == Some(session.id) =>
            {
                return Ok(Found::Held(session, view.fence, None));
            }
            Holder::Session(holder, until) => {
                if transaction.bury_if_dead(holder, until).await? {
                    transaction.vacate(key).await?;
                    transaction.settle(key).await?;
                    continue;
                }
            }
            Holder::Detached(until) if until <= transaction.now_ms() => {
                transaction.vacate(key).await?;
                transaction.settle(key).await?;
                continue;
            }
            Holder::Detached(_) | Holder::Nobody => {}
        }
        if let Some(stale) = ticket.filter(|_| view.stands_elsewhere(session.id)) {
            transaction.strike(key, stale).await?;
            ticket = None;
            continue;
        }
        if let Some(before) = view.before
            && transaction
                .bury_if_dead(view.before_session(), view.before_until)
                .await?
        {
            transaction.strike(key, before).await?;
            continue;
        }
        break view;
    };
    let rung = view.place(session.id);
    let is_free = view.holder() == Holder::Nobody;
    if is_free && may_take(rung.is_some(), view.before.is_some(), claim.order) {
        let fence = transaction.grant(key, claim, &session).await?;
        if let (Some(ticket), Some(_)) = (ticket, rung) {
            transaction.strike(key, ticket).await?;
        }
        return Ok(Found::Held(session, fence, None));
    }
    let mut place = None;
    if waiting.is_some() {
        place = match (ticket, rung) {
            (Some(ticket), Some(rung)) => Some((ticket, rung)),
            _ => {
                let ticket = view.next_ticket;
                transaction.enqueue(key, ticket, claim, &session).await?;
                Some((ticket, 0))
            }
        };
    }
    if is_free {
        // Somebody before us was told and has not come yet; now it has the lock.
        transaction.settle(key).await?;
        let ticket = place.map(|(ticket, _)| ticket);
        if let Some(now) = View::read(transaction.sql, key, ticket, claim.attempt).await? {
            view = now;
        }
    }
    Ok(match place {
        Some((ticket, rung)) => busy(&view, session, ticket, rung),
        None => Found::Busy {
            until: view.held_until(),
            place: None,
        },
    })
}

fn busy(view: &View, session: Arc<Session>, ticket: i64, rung: i64) -> Found {
    let until = [view.held_until(), view.before_until]
        .into_iter()
        .flatten()
        .min();
    let place = Place {
        ticket,
        rung,
        behind: view.predecessor().into_iter().collect(),
        until,
    };
    Found::Busy {
        until,
        place: Some((session, place)),
    }
}
