//! Asking those who hold to let go.

use lockkit_core::{AttemptId, HoldId, Resource};

use super::connection::Connection;
use super::error::Fault;
use super::files::SessionId;
use super::transaction::Transaction;

/// Holds with a session, of a mutex and of everything else.
const HOLDS: &str = "
SELECT l.attempt, l.session, s.expires_at
  FROM lockkit_lock l JOIN lockkit_session s ON s.id = l.session WHERE l.key = ?1
UNION ALL
SELECT h.attempt, h.session, s.expires_at
  FROM lockkit_holder h JOIN lockkit_session s ON s.id = h.session WHERE h.key = ?1";

const MARK_MUTEX: &str = "UPDATE lockkit_lock SET asked = attempt WHERE key = ?1 AND attempt = ?2";

const MARK: &str = "UPDATE lockkit_holder SET asked = 1 WHERE key = ?1 AND attempt = ?2";

const NEWS: &str = "
INSERT OR IGNORE INTO lockkit_request (session, attempt, key) VALUES (?1, ?2, ?3)";

impl Connection {
    /// See [`Backend::request_release`](lockkit_core::Backend::request_release).
    pub(super) async fn request_release(&mut self, resource: &Resource) -> Result<usize, Fault> {
        let shared = self.shared();
        let mut transaction = self.begin().await?;
        let asked = ask_all(&mut transaction, &resource.key()).await;
        let asked = transaction.end(asked).await?;
        for (attempt, session) in &asked {
            if shared.registry.owns(*session) {
                shared.ask(&HoldId::new(resource.clone(), *attempt));
            }
        }
        Ok(asked.len())
    }
}

async fn ask_all(
    transaction: &mut Transaction<'_>,
    key: &str,
) -> Result<Vec<(AttemptId, SessionId)>, Fault> {
    let holds: Vec<(Vec<u8>, Vec<u8>, i64)> = sqlx::query_as(HOLDS)
        .bind(key)
        .fetch_all(&mut *transaction.sql)
        .await?;
    let mut asked = Vec::with_capacity(holds.len());
    for (attempt, session, until) in holds {
        let (Some(attempt), Some(session)) = (
            AttemptId::from_bytes(&attempt),
            SessionId::from_bytes(&session),
        ) else {
            continue;
        };
        let shared = &transaction.shared;
        if shared.is_dead(session, Some(until), transaction.now_ms()) {
            continue;
        }
        // Its owner reads this when its bell rings. We tell it ourselves if that is us.
        let is_ours = shared.registry.owns(session);
        for mark in [MARK_MUTEX, MARK] {
            sqlx::query(mark)
                .bind(key)
                .bind(attempt.as_bytes().as_slice())
                .execute(&mut *transaction.sql)
                .await?;
        }
        if !is_ours {
            sqlx::query(NEWS)
                .bind(session.as_bytes())
                .bind(attempt.as_bytes().as_slice())
                .bind(key)
                .execute(&mut *transaction.sql)
                .await?;
            transaction.ring(session, attempt);
        }
        asked.push((attempt, session));
    }
    Ok(asked)
}
