//! Letting go of a hold that may be one of several, or of a place in line for it; and its change to
//! a hold without a session.

use std::sync::Arc;
use std::time::Duration;

use lockkit_core::{Clock, HoldId, Instant, Released};

use super::connection::Connection;
use super::error::Fault;
use super::files::SessionId;
use super::hall::{Hall, Owner, Stand};
use super::release::Cause;
use super::session::{expiry, millis, remaining, ttl_ms};
use super::shared::Shared;
use super::transaction::Transaction;

/// Lets go of a hold that nobody waits for.
pub(super) const LET_GO: &str = "
PRAGMA synchronous = NORMAL;
DELETE FROM lockkit_holder
 WHERE key = ?1 AND attempt = ?2 AND (expires_at IS NULL OR expires_at > ?3)
   AND (SELECT queued FROM lockkit_lock WHERE key = ?1) = 0
RETURNING 1;
PRAGMA synchronous = FULL";

const REMOVE: &str = "
DELETE FROM lockkit_holder WHERE key = ?1 AND attempt = ?2 RETURNING session, expires_at";

const DETACH: &str = "
UPDATE lockkit_holder SET session = NULL, expires_at = ?3 WHERE key = ?1 AND attempt = ?2";

const NEWS: &str = "
INSERT OR IGNORE INTO lockkit_eviction (session, attempt, key)
SELECT id, ?2, ?3 FROM lockkit_session WHERE id = ?1";

/// Removes a hold or a place in line, and lets in whoever comes next.
pub(super) async fn remove(
    transaction: &mut Transaction<'_>,
    id: &HoldId,
    cause: Cause,
) -> Result<Released, Fault> {
    let (key, primitive, attempt) = (id.resource().key(), id.resource().primitive(), id.attempt());
    let removed: Option<(Option<Vec<u8>>, Option<i64>)> = sqlx::query_as(REMOVE)
        .bind(&key)
        .bind(attempt.as_bytes().as_slice())
        .fetch_optional(&mut *transaction.sql)
        .await?;
    let Some((session, until)) = removed else {
        return withdraw(transaction, id, cause).await;
    };
    if let Some(mut hall) = transaction.hall(&key, primitive).await? {
        transaction.advance(&key, primitive, &mut hall).await?;
    }
    let session = session.as_deref().and_then(SessionId::from_bytes);
    if let (Some(session), Cause::Eviction) = (session, cause)
        && !transaction.shared.registry.owns(session)
    {
        transaction.tell_eviction(session, id).await?;
    }
    let ran_out = until.is_some_and(|until| until <= transaction.now_ms());
    Ok(if session.is_none() && ran_out {
        Released::NotHeld
    } else {
        Released::Done
    })
}

/// Gives up a place in line.
async fn withdraw(
    transaction: &mut Transaction<'_>,
    id: &HoldId,
    cause: Cause,
) -> Result<Released, Fault> {
    let (key, primitive, attempt) = (id.resource().key(), id.resource().primitive(), id.attempt());
    let ticket = transaction.shared.registry.ticket_of(attempt);
    let Some(place) = Stand::of(transaction.sql, &key, attempt, ticket).await? else {
        return Ok(Released::NotHeld);
    };
    transaction.strike(&key, place.ticket).await?;
    if primitive == lockkit_core::Primitive::Latch {
        transaction.clear_latch(&key).await?;
    } else {
        transaction.tell_next(&key, place.ticket).await?;
        if let Some(mut hall) = transaction.hall(&key, primitive).await? {
            transaction.advance(&key, primitive, &mut hall).await?;
        }
    }
    if let (Cause::Eviction, Some(session)) = (cause, place.session) {
        transaction.ring(session, attempt);
    }
    Ok(Released::Done)
}

/// Makes a hold live by its own expiry; whether it is one.
pub(super) async fn extend(
    transaction: &mut Transaction<'_>,
    id: &HoldId,
    ttl: Duration,
) -> Result<bool, Fault> {
    let (key, attempt) = (id.resource().key(), id.attempt());
    let shared = Arc::clone(&transaction.shared);
    let now_ms = transaction.now_ms();
    let hall = Hall::read(transaction.sql, &key).await?;
    if held_until(hall.as_ref(), id, &shared, now_ms).is_none() {
        return Ok(false);
    }
    sqlx::query(DETACH)
        .bind(&key)
        .bind(attempt.as_bytes().as_slice())
        .bind(expiry(transaction.now, ttl_ms(ttl)))
        .execute(&mut *transaction.sql)
        .await?;
    // The first in line watches a session, and there is none any more.
    transaction.tell_next(&key, -1).await?;
    Ok(true)
}

/// Until when a hold lives that does now.
fn held_until(hall: Option<&Hall>, id: &HoldId, shared: &Shared, now_ms: i64) -> Option<i64> {
    let held = hall?.find(id.attempt())?;
    match held.owner {
        Owner::Session(session, until) if shared.is_dead(session?, until, now_ms) => None,
        _ => held.until().filter(|until| *until > now_ms),
    }
}

impl Connection {
    /// What is left of a hold that this process does not carry, and when that was asked.
    pub(super) async fn look_up_shared(
        &mut self,
        id: &HoldId,
    ) -> Result<Option<(Instant, Duration)>, Fault> {
        let shared = self.shared();
        let sent_at = Clock::Boot.now();
        let now_ms = millis(sent_at);
        let hall = Hall::read(self.read().await?, &id.resource().key()).await?;
        let until = held_until(hall.as_ref(), id, &shared, now_ms);
        Ok(until.map(|until| (sent_at, remaining(now_ms, until))))
    }
}

impl Transaction<'_> {
    /// Leaves word for the owner of a hold that was taken away, and rings it.
    pub(super) async fn tell_eviction(
        &mut self,
        session: SessionId,
        id: &HoldId,
    ) -> Result<(), Fault> {
        sqlx::query(NEWS)
            .bind(session.as_bytes())
            .bind(id.attempt().as_bytes().as_slice())
            .bind(id.resource().key())
            .execute(&mut *self.sql)
            .await?;
        self.ring(session, id.attempt());
        Ok(())
    }
}
