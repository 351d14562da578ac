//! One look at a lock: who holds it, and who stands before us.

use lockkit_core::{AttemptId, Order};
use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, Row, SqliteConnection};

use super::error::Fault;
use super::files::SessionId;

/// What decides about a claim, read in one statement.
#[derive(Debug)]
pub(super) struct View {
    session: Option<Vec<u8>>,
    attempt: Option<Vec<u8>>,
    pub(super) fence: i64,
    /// The end of a detached hold.
    expires_at: Option<i64>,
    /// The end of the holder's session; none if there is no such session.
    holder_until: Option<i64>,
    pub(super) next_ticket: i64,
    mine: Option<Vec<u8>>,
    rung: Option<i64>,
    pub(super) before: Option<i64>,
    before_session: Option<Vec<u8>>,
    pub(super) before_until: Option<i64>,
}

impl FromRow<'_, SqliteRow> for View {
    fn from_row(row: &SqliteRow) -> sqlx::Result<Self> {
        Ok(Self {
            session: row.try_get("session")?,
            attempt: row.try_get("attempt")?,
            fence: row.try_get("fence")?,
            expires_at: row.try_get("expires_at")?,
            holder_until: row.try_get("holder_until")?,
            next_ticket: row.try_get("next_ticket")?,
            mine: row.try_get("mine")?,
            rung: row.try_get("rung")?,
            before: row.try_get("before")?,
            before_session: row.try_get("before_session")?,
            before_until: row.try_get("before_until")?,
        })
    }
}

/// `?2` is our ticket, or more than any for who has none; `?3` is our attempt.
const LOOK: &str = "
SELECT l.session, l.attempt, l.fence, l.expires_at, hs.expires_at AS holder_until, l.next_ticket,
       me.session AS mine, me.rung,
       b.ticket AS before, b.session AS before_session, bs.expires_at AS before_until
  FROM lockkit_lock l
  LEFT JOIN lockkit_session hs ON hs.id = l.session
  LEFT JOIN lockkit_waiter me ON me.key = l.key AND me.ticket = ?2 AND me.attempt = ?3
  LEFT JOIN lockkit_waiter b ON b.key = l.key AND b.ticket =
       (SELECT max(w.ticket) FROM lockkit_waiter w WHERE w.key = l.key AND w.ticket < ?2)
  LEFT JOIN lockkit_session bs ON bs.id = b.session
 WHERE l.key = ?1";

/// Who holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    Nobody,
    /// A session, and until when if it has a row.
    Session(Option<SessionId>, Option<i64>),
    /// Nobody's session: the hold lives until then.
    Detached(i64),
}

impl View {
    /// Looks; `None` if the lock was never held.
    pub(super) async fn read(
        sql: &mut SqliteConnection,
        key: &str,
        ticket: Option<i64>,
        attempt: AttemptId,
    ) -> Result<Option<Self>, Fault> {
        let view = sqlx::query_as(LOOK)
            .bind(key)
            .bind(ticket.unwrap_or(i64::MAX))
            .bind(attempt.as_bytes().as_slice())
            .fetch_optional(sql)
            .await?;
        Ok(view)
    }

    pub(super) fn is_held_by(&self, attempt: AttemptId) -> bool {
        self.attempt.as_deref() == Some(attempt.as_bytes().as_slice())
    }

    pub(super) fn holder(&self) -> Holder {
        match (&self.attempt, &self.session) {
            (None, _) => Holder::Nobody,
            (Some(_), None) => Holder::Detached(self.expires_at.unwrap_or(0)),
            (Some(_), Some(session)) => {
                Holder::Session(SessionId::from_bytes(session), self.holder_until)
            }
        }
    }

    /// Until when the holder holds if it is heard of no more.
    pub(super) fn held_until(&self) -> Option<i64> {
        match self.holder() {
            Holder::Nobody => None,
            Holder::Session(_, until) => until,
            Holder::Detached(until) => Some(until),
        }
    }

    /// The session of the nearest waiter before us.
    pub(super) fn before_session(&self) -> Option<SessionId> {
        SessionId::from_bytes(self.before_session.as_deref()?)
    }

    /// How often our bell was rung, if we stand in line under this session.
    pub(super) fn place(&self, session: SessionId) -> Option<i64> {
        (self.mine.as_deref() == Some(session.as_bytes()))
            .then_some(self.rung)
            .flatten()
    }

    /// Whether we stand in line under a session that is not this one.
    pub(super) fn stands_elsewhere(&self, session: SessionId) -> bool {
        self.mine
            .as_deref()
            .is_some_and(|mine| mine != session.as_bytes())
    }

    /// Whose death makes it our turn to look: the nearest waiter before us, or else the holder.
    pub(super) fn predecessor(&self) -> Option<SessionId> {
        match (self.before, self.holder()) {
            (Some(_), _) => self.before_session(),
            (None, Holder::Session(session, _)) => session,
            (None, _) => None,
        }
    }
}

/// Whether a free lock may be taken.
pub(super) const fn may_take(queued: bool, somebody_before: bool, order: Order) -> bool {
    // Who stands in line keeps to it; only a newcomer may pass.
    !somebody_before || (!queued && matches!(order, Order::Barging))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_barging_newcomer_passes_others() {
        for (queued, somebody_before, order, wanted) in [
            (false, false, Order::Fair, true),
            (false, false, Order::Barging, true),
            (false, true, Order::Fair, false),
            (false, true, Order::Barging, true),
            (true, true, Order::Barging, false),
            (true, true, Order::Fair, false),
            (true, false, Order::Barging, true),
            (true, false, Order::Fair, true),
        ] {
            assert_eq!(may_take(queued, somebody_before, order), wanted);
        }
    }
}
