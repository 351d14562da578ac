//! Heartbeats.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use lockkit_core::{Clock, Error, HoldId, Instant, Primitive, Renewal};
use sqlx::types::Json;

use super::connection::Connection;
use super::error::{Fault, repeat};
use super::files::SessionId;
use super::session::{Session, millis, remaining};
use super::transaction::beat;
use super::view::{Holder, View};

/// Ids verified by one statement.
const CHUNK: usize = 1000;

/// Which of `?1`, an array of attempts in hex with their keys behind, do not hold.
const NOT_HELD: &str = "
SELECT j.key FROM json_each(?1) j LEFT JOIN lockkit_lock l ON l.key = substr(j.value, 33)
 WHERE l.attempt IS NOT unhex(substr(j.value, 1, 32))
   AND NOT EXISTS (SELECT 1 FROM lockkit_holder h WHERE h.key = substr(j.value, 33)
                      AND h.attempt = unhex(substr(j.value, 1, 32)))";

const STANDS: &str = "
SELECT 1 FROM lockkit_waiter WHERE key = ?1 AND ticket = ?2 AND attempt = ?3";

type Verdicts = HashMap<usize, Renewal>;

impl Connection {
    /// Renews: one row written for each session, then one look at what it carries.
    pub(super) async fn renew(&mut self, ids: &[HoldId]) -> Result<Vec<Renewal>, Fault> {
        let shared = self.shared();
        let mut sessions: HashMap<SessionId, (Arc<Session>, Vec<usize>)> = HashMap::new();
        let mut verdicts = Verdicts::new();
        for (index, id) in ids.iter().enumerate() {
            if let Some(session) = shared.registry.session_of(id.attempt()) {
                let carried = sessions.entry(session.id).or_insert((session, Vec::new()));
                carried.1.push(index);
            } else {
                verdicts.insert(index, self.look_up(id).await?);
            }
        }
        for (session, carried) in sessions.into_values() {
            match self.renew_session(&session, ids, &carried).await {
                Ok(renewed) => verdicts.extend(renewed),
                Err(fault) => {
                    let error = fault.into_error(shared.files.database());
                    let unknown = |index: &usize| (*index, Renewal::Unknown(repeat(&error)));
                    verdicts.extend(carried.iter().map(unknown));
                }
            }
        }
        Ok((0..ids.len())
            .map(|i| verdicts.remove(&i).unwrap_or(Renewal::Gone))
            .collect())
    }

    async fn renew_session(
        &mut self,
        session: &Arc<Session>,
        ids: &[HoldId],
        carried: &[usize],
    ) -> Result<Verdicts, Fault> {
        let all_gone = || {
            carried
                .iter()
                .map(|index| (*index, Renewal::Gone))
                .collect()
        };
        let write = self.write().await?;
        let sent_at = write.now;
        let beaten = !session.is_over() && beat(write.sql, session, sent_at).await?;
        drop(write);
        if !beaten {
            self.shared().end_session(session);
            return Ok(all_gone());
        }
        session.confirm(sent_at);
        let mut missing = HashSet::new();
        for chunk in carried.chunks(CHUNK) {
            missing.extend(self.missing(ids, chunk).await?);
        }
        let verdict = |index: &usize| {
            let gone = missing.contains(index);
            (
                *index,
                if gone {
                    Renewal::Gone
                } else {
                    renewed(sent_at, session.ttl())
                },
            )
        };
        Ok(carried.iter().map(verdict).collect())
    }

    /// Which of a chunk neither hold nor stand in line.
    async fn missing(&mut self, ids: &[HoldId], chunk: &[usize]) -> Result<Vec<usize>, Fault> {
        let shared = self.shared();
        let wanted: Vec<String> = chunk
            .iter()
            .map(|index| format!("{}{}", ids[*index].attempt(), ids[*index].resource().key()))
            .collect();
        let not_held: Vec<(i64,)> = sqlx::query_as(NOT_HELD)
            .bind(Json(&wanted))
            .fetch_all(self.read().await?)
            .await?;
        let mut missing = Vec::new();
        for (at,) in not_held {
            let Some(index) = usize::try_from(at).ok().and_then(|at| chunk.get(at)) else {
                continue;
            };
            let id = &ids[*index];
            let ticket = shared.registry.ticket_of(id.attempt());
            if ticket.is_none() || !self.stands(id, ticket).await? {
                missing.push(*index);
            }
        }
        Ok(missing)
    }

    async fn stands(&mut self, id: &HoldId, ticket: Option<i64>) -> Result<bool, Fault> {
        let stands: Option<(i64,)> = sqlx::query_as(STANDS)
            .bind(id.resource().key())
            .bind(ticket)
            .bind(id.attempt().as_bytes().as_slice())
            .fetch_optional(self.read().await?)
            .await?;
        Ok(stands.is_some())
    }

    /// For an id that this process does not carry: what its row says, without changing it.
    async fn look_up(&mut self, id: &HoldId) -> Result<Renewal, Fault> {
        if id.resource().primitive() != Primitive::Mutex {
            let found = self.look_up_shared(id).await?;
            return Ok(found.map_or(Renewal::Gone, |(sent_at, ttl)| renewed(sent_at, ttl)));
        }
        let shared = self.shared();
        let sent_at = Clock::Boot.now();
        let now_ms = millis(sent_at);
        let key = id.resource().key();
        let view = View::read(self.read().await?, &key, None, id.attempt()).await?;
        let Some(view) = view.filter(|view| view.is_held_by(id.attempt())) else {
            return Ok(Renewal::Gone);
        };
        let until = match view.holder() {
            Holder::Session(Some(session), until) if shared.is_dead(session, until, now_ms) => None,
            _ => view.held_until().filter(|until| *until > now_ms),
        };
        Ok(until.map_or(Renewal::Gone, |until| {
            renewed(sent_at, remaining(now_ms, until))
        }))
    }
}

const fn renewed(sent_at: Instant, ttl: Duration) -> Renewal {
    Renewal::Renewed { sent_at, ttl }
}

/// The answer for every id when the whole request failed.
pub(super) fn unknown(ids: &[HoldId], error: &Error) -> Vec<Renewal> {
    ids.iter()
        .map(|_| Renewal::Unknown(repeat(error)))
        .collect()
}
