//! Letting go: release, withdrawal, eviction, and the change to a hold without a session.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use lockkit_core::{AttemptId, Clock, HoldId, Primitive, Released, Renewal};
use sqlx::types::Json;

use super::connection::Connection;
use super::error::Fault;
use super::files::SessionId;
use super::holders;
use super::session::{expiry, millis, ttl_ms};
use super::transaction::Transaction;
use super::view::{Holder, View};

/// A release is not flushed to the disk. It survives the end of this process all the same, because
/// the kernel has it; if the machine fails, the next start frees every hold. Only what raises a
/// fence has to be flushed.
const LET_GO: &str = "
PRAGMA synchronous = NORMAL;
UPDATE lockkit_lock SET session = NULL, attempt = NULL, expires_at = NULL, label = ''
 WHERE key = ?1 AND attempt = ?2 AND queued = 0 AND (expires_at IS NULL OR expires_at > ?3)
RETURNING 1;
PRAGMA synchronous = FULL";

/// Which of `?1`, an array of attempts in hex with their keys behind, hold with nobody waiting.
const PLAIN: &str = "
SELECT j.key FROM json_each(?1) j JOIN lockkit_lock l ON l.key = substr(j.value, 33)
 WHERE l.attempt = unhex(substr(j.value, 1, 32)) AND l.queued = 0
   AND (l.expires_at IS NULL OR l.expires_at > ?2)";

const VACATE_ALL: &str = "
UPDATE lockkit_lock SET session = NULL, attempt = NULL, expires_at = NULL, label = ''
 WHERE key IN (SELECT value FROM json_each(?1))";

/// Why something is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    Release,
    Eviction,
}

impl Connection {
    /// Lets go of a hold that nobody waits for, by one statement; returns whether that was all.
    async fn let_go(&mut self, id: &HoldId) -> Result<bool, Fault> {
        let write = self.write().await?;
        // If it ends in an error, nobody knows whether the connection flushes again.
        *write.in_doubt = true;
        let statement = match id.resource().primitive() {
            Primitive::Mutex => LET_GO,
            _ => holders::LET_GO,
        };
        let let_go: Vec<(i64,)> = sqlx::query_as(statement)
            .persistent(false) // SQLite obeys the pragmas while it compiles them.
            .bind(id.resource().key())
            .bind(id.attempt().as_bytes().as_slice())
            .bind(millis(write.now))
            .fetch_all(&mut *write.sql)
            .await?;
        *write.in_doubt = false;
        Ok(!let_go.is_empty())
    }

    /// Removes holds and places in line, all in one transaction; a single hold that nobody waits
    /// for by one statement.
    pub(super) async fn remove(
        &mut self,
        ids: &[HoldId],
        cause: Cause,
    ) -> Result<Vec<Released>, Fault> {
        if let ([id], Cause::Release) = (ids, cause)
            && self.let_go(id).await?
        {
            return Ok(vec![Released::Done]);
        }
        let mut transaction = self.begin().await?;
        let removed = remove_all(&mut transaction, ids, cause).await;
        transaction.end(removed).await
    }

    /// Makes a hold live by its own expiry.
    pub(super) async fn extend(&mut self, id: &HoldId, ttl: Duration) -> Result<Renewal, Fault> {
        let sent_at = Clock::Boot.now();
        let mut transaction = self.begin().await?;
        let extended = extend(&mut transaction, id, ttl).await;
        Ok(if transaction.end(extended).await? {
            Renewal::Renewed {
                sent_at,
                ttl: Duration::from_millis(ttl_ms(ttl).unsigned_abs()),
            }
        } else {
            Renewal::Gone
        })
    }
}

async fn remove_all(
    transaction: &mut Transaction<'_>,
    ids: &[HoldId],
    cause: Cause,
) -> Result<Vec<Released>, Fault> {
    // One by one costs several statements each; most of a batch has nobody waiting.
    let mut plain = match (ids, cause) {
        ([_, _, ..], Cause::Release) => let_all_go(transaction, ids).await?,
        _ => HashSet::new(),
    };
    let mut removed = Vec::with_capacity(ids.len());
    for id in ids {
        removed.push(if plain.remove(&id.attempt()) {
            Released::Done
        } else {
            remove(transaction, id, cause).await?
        });
    }
    Ok(removed)
}

/// Lets go of all holds that nobody waits for, by two statements.
async fn let_all_go(
    transaction: &mut Transaction<'_>,
    ids: &[HoldId],
) -> Result<HashSet<AttemptId>, Fault> {
    let asked = |id: &HoldId| format!("{}{}", id.attempt(), id.resource().key());
    let plain: Vec<(i64,)> = sqlx::query_as(PLAIN)
        .bind(Json(ids.iter().map(asked).collect::<Vec<_>>()))
        .bind(transaction.now_ms())
        .fetch_all(&mut *transaction.sql)
        .await?;
    let plain = plain
        .into_iter()
        .filter_map(|(at,)| ids.get(usize::try_from(at).ok()?));
    let (keys, attempts): (Vec<_>, _) = plain.map(|id| (id.resource().key(), id.attempt())).unzip();
    sqlx::query(VACATE_ALL)
        .bind(Json(keys))
        .execute(&mut *transaction.sql)
        .await?;
    Ok(attempts)
}

/// Removes a hold or a place in line.
async fn remove(
    transaction: &mut Transaction<'_>,
    id: &HoldId,
    cause: Cause,
) -> Result<Released, Fault> {
    if id.resource().primitive() != Primitive::Mutex {
        return holders::remove(transaction, id, cause).await;
    }
    let (key, attempt) = (id.resource().key(), id.attempt());
    let Some(view) = View::read(transaction.sql, &key, None, attempt).await? else {
        return Ok(Released::NotHeld);
    };
    if !view.is_held_by(attempt) {
        return withdraw(transaction, &key, attempt, cause, &view).await;
    }
    let holder = view.holder();
    if !transaction.settle(&key).await? {
        transaction.vacate(&key).await?;
    }
    match holder {
        Holder::Session(Some(session), _) if cause == Cause::Eviction => {
            // Its owner reads this when its bell rings. We know already if that is us.
            if !transaction.shared.registry.owns(session) {
                transaction.tell_eviction(session, id).await?;
            }
            Ok(Released::Done)
        }
        Holder::Detached(until) if until <= transaction.now_ms() => Ok(Released::NotHeld),
        _ => Ok(Released::Done),
    }
}

/// Gives up a place in line.
async fn withdraw(
    transaction: &mut Transaction<'_>,
    key: &str,
    attempt: AttemptId,
    cause: Cause,
    view: &View,
) -> Result<Released, Fault> {
    let find = "SELECT ticket, session FROM lockkit_waiter WHERE key = ?1 AND attempt = ?2";
    let found: Option<(i64, Vec<u8>)> = sqlx::query_as(find)
        .bind(key)
        .bind(attempt.as_bytes().as_slice())
        .fetch_optional(&mut *transaction.sql)
        .await?;
    let Some((ticket, session)) = found else {
        return Ok(Released::NotHeld);
    };
    transaction.strike(key, ticket).await?;
    transaction.tell_next(key, ticket).await?;
    if view.holder() == Holder::Nobody {
        // It had been told that the lock is free; now somebody else must know.
        transaction.settle(key).await?;
    }
    if let (Cause::Eviction, Some(session)) = (cause, SessionId::from_bytes(&session)) {
        transaction.ring(session, attempt);
    }
    Ok(Released::Done)
}

async fn extend(
    transaction: &mut Transaction<'_>,
    id: &HoldId,
    ttl: Duration,
) -> Result<bool, Fault> {
    if id.resource().primitive() != Primitive::Mutex {
        return holders::extend(transaction, id, ttl).await;
    }
    let (key, attempt) = (id.resource().key(), id.attempt());
    let shared = Arc::clone(&transaction.shared);
    let Some(view) = View::read(transaction.sql, &key, None, attempt).await? else {
        return Ok(false);
    };
    let now_ms = transaction.now_ms();
    let lives = view.is_held_by(attempt)
        && match view.holder() {
            Holder::Session(Some(session), until) => !shared.is_dead(session, until, now_ms),
            Holder::Detached(until) => until > now_ms,
            _ => false,
        };
    if !lives {
        return Ok(false);
    }
    sqlx::query("UPDATE lockkit_lock SET session = NULL, expires_at = ?2 WHERE key = ?1")
        .bind(&key)
        .bind(expiry(transaction.now, ttl_ms(ttl)))
        .execute(&mut *transaction.sql)
        .await?;
    // The first in line watches a session, and there is none any more.
    transaction.tell_next(&key, -1).await?;
    Ok(true)
}
