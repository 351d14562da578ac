//! A transaction that writes, and what is to be done once it is committed.

use std::collections::HashSet;
use std::sync::Arc;

use lockkit_core::{AttemptId, Clock, Instant};
use sqlx::SqliteConnection;

use super::error::Fault;
use super::files::SessionId;
use super::session::{Session, expiry, millis};
use super::shared::Shared;
use super::writer::Turn;

/// Nobody else writes while it lives. To be ended with [`end`](Self::end).
#[derive(Debug)]
pub(super) struct Transaction<'c> {
    pub(super) shared: Arc<Shared>,
    pub(super) sql: &'c mut SqliteConnection,
    /// The clock, read when nobody else could write any more.
    pub(super) now: Instant,
    in_doubt: &'c mut bool,
    turn: Turn,
    beaten: Vec<Arc<Session>>,
    made: Vec<Arc<Session>>,
    buried: Vec<SessionId>,
    rings: Vec<Ring>,
    /// Nothing of it is to stay, although nothing failed.
    undone: bool,
}

/// Somebody to wake.
#[derive(Clone, Copy, Debug)]
struct Ring {
    session: SessionId,
    attempt: AttemptId,
}

const BEAT: &str = "UPDATE lockkit_session SET ver = ver + 1, expires_at = ?2 WHERE id = ?1";

/// Renews a session; returns whether it was there to be renewed. A session that another process
/// has found dead has no row any more, and so never comes back.
pub(super) async fn beat(
    sql: &mut SqliteConnection,
    session: &Session,
    now: Instant,
) -> Result<bool, Fault> {
    let expires_at = expiry(now, session.ttl_ms);
    let beat = sqlx::query(BEAT)
        .bind(session.id.as_bytes())
        .bind(expires_at);
    Ok(beat.execute(sql).await?.rows_affected() == 1)
}

/// Makes the end of a session final.
pub(super) async fn delete_session(sql: &mut SqliteConnection, id: SessionId) -> Result<(), Fault> {
    for statement in [
        "DELETE FROM lockkit_session WHERE id = ?1",
        "DELETE FROM lockkit_eviction WHERE session = ?1",
        "DELETE FROM lockkit_request WHERE session = ?1",
    ] {
        sqlx::query(statement)
            .bind(id.as_bytes())
            .execute(&mut *sql)
            .await?;
    }
    Ok(())
}

impl<'c> Transaction<'c> {
    pub(super) fn new(
        shared: Arc<Shared>,
        sql: &'c mut SqliteConnection,
        in_doubt: &'c mut bool,
        turn: Turn,
    ) -> Self {
        Self {
            shared,
            sql,
            now: Clock::Boot.now(),
            in_doubt,
            turn,
            beaten: Vec::new(),
            made: Vec::new(),
            buried: Vec::new(),
            rings: Vec::new(),
            undone: false,
        }
    }

    pub(super) fn now_ms(&self) -> i64 {
        millis(self.now)
    }

    /// A session of ours with most of its lease left once this transaction is committed.
    pub(super) async fn session(&mut self, ttl_ms: i64) -> Result<Arc<Session>, Fault> {
        let mut ours = self.beaten.iter().chain(&self.made);
        if let Some(session) = ours.find(|session| session.ttl_ms == ttl_ms) {
            return Ok(Arc::clone(session));
        }
        if let Some(session) = self.shared.registry.session(ttl_ms) {
            if session.is_fresh() && self.exists(session.id).await? {
                return Ok(session);
            }
            if beat(self.sql, &session, self.now).await? {
                self.beaten.push(Arc::clone(&session));
                return Ok(session);
            }
            self.shared.end_session(&session);
        }
        for idle in self.shared.registry.retire() {
            delete_session(self.sql, idle.id).await?;
            self.buried.push(idle.id);
        }
        let id = SessionId::random();
        // Locked before anybody can see the row.
        let file = self.shared.files.create_session(id)?;
        let files = &self.shared.files;
        self.shared.bell.expect(&files.session(id));
        let session = Arc::new(Session::new(id, ttl_ms, file));
        self.made.push(Arc::clone(&session));
        sqlx::query("INSERT INTO lockkit_session (id, ttl_ms, expires_at) VALUES (?1, ?2, ?3)")
            .bind(id.as_bytes())
            .bind(ttl_ms)
            .bind(expiry(self.now, ttl_ms))
            .execute(&mut *self.sql)
            .await?;
        Ok(session)
    }

    async fn exists(&mut self, id: SessionId) -> Result<bool, Fault> {
        let found: Option<(i64,)> = sqlx::query_as("SELECT 1 FROM lockkit_session WHERE id = ?1")
            .bind(id.as_bytes())
            .fetch_optional(&mut *self.sql)
            .await?;
        Ok(found.is_some())
    }

    /// Whether a session is dead; if it is, makes that final by removing it.
    pub(super) async fn bury_if_dead(
        &mut self,
        session: Option<SessionId>,
        expires_at: Option<i64>,
    ) -> Result<bool, Fault> {
        let Some(id) = session else { return Ok(true) };
        if self.is_ours(id) || !self.shared.is_dead(id, expires_at, self.now_ms()) {
            return Ok(false);
        }
        delete_session(self.sql, id).await?;
        self.buried.push(id);
        Ok(true)
    }

    /// Whether this transaction itself has renewed or made the session.
    fn is_ours(&self, id: SessionId) -> bool {
        let mut ours = self.beaten.iter().chain(&self.made);
        ours.any(|session| session.id == id)
    }

    /// Wakes a claim once this is committed.
    pub(super) fn ring(&mut self, session: SessionId, attempt: AttemptId) {
        self.rings.push(Ring { session, attempt });
    }

    /// Makes the end roll back although all went well.
    pub(super) const fn undo(&mut self) {
        self.undone = true;
    }

    /// Commits if all went well, rolls back otherwise; then does what was to be done.
    pub(super) async fn end<T>(self, outcome: Result<T, Fault>) -> Result<T, Fault> {
        let outcome = match outcome {
            Ok(value) if self.undone => {
                sqlx::query("ROLLBACK").execute(&mut *self.sql).await?;
                *self.in_doubt = false;
                for session in &self.made {
                    self.shared.files.remove_session(session.id);
                }
                return Ok(value);
            }
            Ok(value) => {
                let committed = sqlx::query("COMMIT").execute(&mut *self.sql).await;
                committed.map(|_| value).map_err(Fault::from)
            }
            Err(fault) => Err(fault),
        };
        // A failure that rolled back by itself makes this one fail too, which is as good.
        let closed = outcome.is_ok() || {
            let rolled_back = sqlx::query("ROLLBACK").execute(&mut *self.sql).await;
            rolled_back.is_ok()
        };
        *self.in_doubt = !closed;
        // Whoever wakes up can write at once.
        drop(self.turn);
        let shared = &self.shared;
        if outcome.is_err() {
            for session in self.made {
                shared.files.remove_session(session.id);
            }
            return outcome;
        }
        for session in self.beaten {
            session.confirm(self.now);
        }
        for session in self.made {
            session.confirm(self.now);
            shared.registry.begin(session);
        }
        for id in self.buried {
            shared.files.remove_session(id);
        }
        let mut rung = HashSet::new();
        for Ring { session, attempt } in self.rings {
            if !shared.registry.wake(attempt) && rung.insert(session) {
                shared.files.ring(session);
            }
        }
        outcome
    }
}
