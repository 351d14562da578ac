//! Latches: setting them, counting down, and those who wait for them.

use std::collections::HashSet;

use lockkit_core::{AttemptId, CountDown, LatchState, LockName, Resource};

use super::connection::Connection;
use super::error::Fault;
use super::files::SessionId;
use super::hall::Hall;
use super::kind::number;
use super::transaction::Transaction;

const SET: &str = "UPDATE lockkit_lock SET latch_of = ?2, latch_left = ?2 WHERE key = ?1";

const ARRIVE: &str = "INSERT OR IGNORE INTO lockkit_arrival (key, participant) VALUES (?1, ?2)";

const COUNT: &str = "
UPDATE lockkit_lock SET latch_left = latch_left - 1 WHERE key = ?1 RETURNING latch_left";

const OPEN: &str = "
UPDATE lockkit_waiter SET passed = 1, rung = rung + 1 WHERE key = ?1 AND passed = 0
RETURNING session, attempt";

const SESSIONS: &str = "
SELECT DISTINCT w.session, s.expires_at
  FROM lockkit_waiter w LEFT JOIN lockkit_session s ON s.id = w.session WHERE w.key = ?1";

impl Connection {
    /// See [`Backend::set_latch`](lockkit_core::Backend::set_latch).
    pub(super) async fn set_latch(
        &mut self,
        resource: &Resource,
        count: u32,
    ) -> Result<bool, Fault> {
        let mut transaction = self.begin().await?;
        let set = set(&mut transaction, &resource.key(), count).await;
        transaction.end(set).await
    }

    /// See [`Backend::count_down`](lockkit_core::Backend::count_down).
    pub(super) async fn count_down(
        &mut self,
        resource: &Resource,
        participant: &LockName,
    ) -> Result<CountDown, Fault> {
        let key = resource.key();
        // A latch that is open, or was never set, is told by reading.
        let latch = Hall::read(self.read().await?, &key).await?;
        match latch.and_then(|hall| hall.latch) {
            None => return Ok(CountDown::NotSet),
            Some(latch) if latch.is_open() => return Ok(CountDown::Left(0)),
            Some(_) => {}
        }
        let mut transaction = self.begin().await?;
        let counted = count_down(&mut transaction, &key, participant).await;
        transaction.end(counted).await
    }
}

async fn set(transaction: &mut Transaction<'_>, key: &str, count: u32) -> Result<bool, Fault> {
    transaction.clear_latch(key).await?;
    let latch = match Hall::read(transaction.sql, key).await? {
        Some(hall) => hall.latch,
        None => {
            transaction.insert_lock(key).await?;
            None
        }
    };
    if latch.is_some_and(|latch| !latch.is_open()) {
        return Ok(false);
    }
    sqlx::query(SET)
        .bind(key)
        .bind((count > 0).then_some(count))
        .execute(&mut *transaction.sql)
        .await?;
    Ok(true)
}

async fn count_down(
    transaction: &mut Transaction<'_>,
    key: &str,
    participant: &LockName,
) -> Result<CountDown, Fault> {
    let latch = Hall::read(transaction.sql, key).await?;
    let Some(LatchState { left, .. }) = latch.and_then(|hall| hall.latch) else {
        return Ok(CountDown::NotSet);
    };
    if left == 0 {
        return Ok(CountDown::Left(0));
    }
    let arrived = sqlx::query(ARRIVE)
        .bind(key)
        .bind(participant.as_str())
        .execute(&mut *transaction.sql)
        .await?;
    if arrived.rows_affected() == 0 {
        return Ok(CountDown::Left(left));
    }
    let (left,): (i64,) = sqlx::query_as(COUNT)
        .bind(key)
        .fetch_one(&mut *transaction.sql)
        .await?;
    if left == 0 {
        transaction.open_latch(key).await?;
    }
    Ok(CountDown::Left(number(left)))
}

impl Transaction<'_> {
    /// Lets everybody pass who lives and waits.
    async fn open_latch(&mut self, key: &str) -> Result<(), Fault> {
        sqlx::query("DELETE FROM lockkit_arrival WHERE key = ?1")
            .bind(key)
            .execute(&mut *self.sql)
            .await?;
        self.clear_latch(key).await?;
        let passed: Vec<(Vec<u8>, Vec<u8>)> = sqlx::query_as(OPEN)
            .bind(key)
            .fetch_all(&mut *self.sql)
            .await?;
        for (session, attempt) in passed {
            let session = SessionId::from_bytes(&session);
            if let (Some(session), Some(attempt)) = (session, AttemptId::from_bytes(&attempt)) {
                self.ring(session, attempt);
            }
        }
        Ok(())
    }

    /// Takes the dead out of those who wait: nobody waits behind them who would find them.
    pub(super) async fn clear_latch(&mut self, key: &str) -> Result<(), Fault> {
        let sessions: Vec<(Vec<u8>, Option<i64>)> = sqlx::query_as(SESSIONS)
            .bind(key)
            .fetch_all(&mut *self.sql)
            .await?;
        let mut dead = HashSet::new();
        for (session, until) in sessions {
            let id = SessionId::from_bytes(&session);
            if self.bury_if_dead(id, until).await? {
                dead.insert(session);
            }
        }
        for session in dead {
            let strike = "DELETE FROM lockkit_waiter WHERE key = ?1 AND session = ?2";
            let struck = sqlx::query(strike)
                .bind(key)
                .bind(session.as_slice())
                .execute(&mut *self.sql)
                .await?;
            let count = "UPDATE lockkit_lock SET queued = queued - ?2 WHERE key = ?1";
            sqlx::query(count)
                .bind(key)
                .bind(i64::try_from(struck.rows_affected()).unwrap_or(i64::MAX))
                .execute(&mut *self.sql)
                .await?;
        }
        Ok(())
    }
}
