//! Changes to a lock and its queue, inside a transaction.

use std::sync::Arc;

use lockkit_core::{AttemptId, Claim, Order};

use super::error::Fault;
use super::files::SessionId;
use super::kind::Kind;
use super::session::Session;
use super::transaction::Transaction;

type Head = (i64, Vec<u8>, Vec<u8>, Option<i64>);

const HEAD: &str = "
SELECT w.ticket, w.session, w.attempt, s.expires_at
  FROM lockkit_waiter w LEFT JOIN lockkit_session s ON s.id = w.session
 WHERE w.key = ?1 ORDER BY w.ticket LIMIT 1";

const HAND_OVER: &str = "
UPDATE lockkit_lock
   SET (session, attempt, label) = (SELECT session, attempt, label FROM lockkit_waiter
                                     WHERE key = ?1 AND ticket = ?2),
       fence = fence + 1, expires_at = NULL, since = ?3, queued = queued - 1
 WHERE key = ?1;
DELETE FROM lockkit_waiter WHERE key = ?1 AND ticket = ?2";

impl Transaction<'_> {
    /// Makes the row of a lock that was never held.
    pub(super) async fn insert_lock(&mut self, key: &str) -> Result<(), Fault> {
        let insert =
            "INSERT INTO lockkit_lock (key, fence) SELECT ?1, fence_floor FROM lockkit_meta";
        sqlx::query(insert)
            .bind(key)
            .execute(&mut *self.sql)
            .await?;
        Ok(())
    }

    /// Gives a free lock to a claim; returns the fence.
    pub(super) async fn grant(
        &mut self,
        key: &str,
        claim: &Claim,
        session: &Session,
    ) -> Result<i64, Fault> {
        let grant = "UPDATE lockkit_lock
                        SET session = ?2, attempt = ?3, fence = fence + 1, since = ?4, label = ?5
                      WHERE key = ?1 AND attempt IS NULL RETURNING fence";
        let (fence,): (i64,) = sqlx::query_as(grant)
            .bind(key)
            .bind(session.id.as_bytes())
            .bind(claim.attempt.as_bytes().as_slice())
            .bind(self.now_ms())
            .bind(claim.label.encode())
            .fetch_one(&mut *self.sql)
            .await?;
        Ok(fence)
    }

    /// Takes a lock away from its holder.
    pub(super) async fn vacate(&mut self, key: &str) -> Result<(), Fault> {
        let vacate = "UPDATE lockkit_lock
                         SET session = NULL, attempt = NULL, expires_at = NULL, label = ''
                       WHERE key = ?1";
        sqlx::query(vacate)
            .bind(key)
            .execute(&mut *self.sql)
            .await?;
        Ok(())
    }

    /// Hands a lock over to the first in line who lives; `false` if there is nobody, so that a lock
    /// that was held has to be vacated.
    ///
    /// Also where the first in line would let others pass: to offer the lock instead costs a second
    /// transaction, and a second flush, in the process that then takes it.
    pub(super) async fn settle(&mut self, key: &str) -> Result<bool, Fault> {
        while let Some((ticket, session, attempt, until)) = self.head(key).await? {
            let session = SessionId::from_bytes(&session);
            let attempt = AttemptId::from_bytes(&attempt);
            if self.bury_if_dead(session, until).await? {
                self.strike(key, ticket).await?;
                continue;
            }
            let (Some(session), Some(attempt)) = (session, attempt) else {
                self.strike(key, ticket).await?;
                continue;
            };
            sqlx::query(HAND_OVER)
                .bind(key)
                .bind(ticket)
                .bind(self.now_ms())
                .execute(&mut *self.sql)
                .await?;
            self.ring(session, attempt);
            return Ok(true);
        }
        Ok(false)
    }

    async fn head(&mut self, key: &str) -> Result<Option<Head>, Fault> {
        Ok(sqlx::query_as(HEAD)
            .bind(key)
            .fetch_optional(&mut *self.sql)
            .await?)
    }

    /// Puts a claim at the end of the line; returns its ticket.
    pub(super) async fn enqueue(
        &mut self,
        key: &str,
        ticket: i64,
        claim: &Claim,
        session: &Arc<Session>,
    ) -> Result<(), Fault> {
        let insert =
            "INSERT INTO lockkit_waiter (key, ticket, session, attempt, fair, since, label, mode,
                                        amount, prefer)
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
        let kind = Kind::of(claim.mode);
        sqlx::query(insert)
            .bind(key)
            .bind(ticket)
            .bind(session.id.as_bytes())
            .bind(claim.attempt.as_bytes().as_slice())
            .bind(claim.order == Order::Fair)
            .bind(self.now_ms())
            .bind(claim.label.encode())
            .bind(kind.mode)
            .bind(kind.amount)
            .bind(kind.prefer)
            .execute(&mut *self.sql)
            .await?;
        let count = "UPDATE lockkit_lock SET queued = queued + 1, next_ticket = next_ticket + 1
                      WHERE key = ?1";
        sqlx::query(count).bind(key).execute(&mut *self.sql).await?;
        Ok(())
    }

    /// Takes a place out of the line.
    pub(super) async fn strike(&mut self, key: &str, ticket: i64) -> Result<(), Fault> {
        let delete = "DELETE FROM lockkit_waiter WHERE key = ?1 AND ticket = ?2";
        let struck = sqlx::query(delete)
            .bind(key)
            .bind(ticket)
            .execute(&mut *self.sql)
            .await?;
        if struck.rows_affected() == 1 {
            let count = "UPDATE lockkit_lock SET queued = queued - 1 WHERE key = ?1";
            sqlx::query(count).bind(key).execute(&mut *self.sql).await?;
        }
        Ok(())
    }

    /// Tells the next in line after `ticket` that whom it watches has changed.
    pub(super) async fn tell_next(&mut self, key: &str, ticket: i64) -> Result<(), Fault> {
        let next = "UPDATE lockkit_waiter SET rung = rung + 1 WHERE key = ?1 AND ticket =
                    (SELECT min(ticket) FROM lockkit_waiter WHERE key = ?1 AND ticket > ?2)
                    RETURNING session, attempt";
        let next: Vec<(Vec<u8>, Vec<u8>)> = sqlx::query_as(next)
            .bind(key)
            .bind(ticket)
            .fetch_all(&mut *self.sql)
            .await?;
        for (session, attempt) in next {
            if let (Some(session), Some(attempt)) = (
                SessionId::from_bytes(&session),
                AttemptId::from_bytes(&attempt),
            ) {
                self.ring(session, attempt);
            }
        }
        Ok(())
    }
}
