//! One look at a name that may have several holders: its row, who holds, who stands where in line.

use lockkit_core::{AttemptId, LatchState, Mode};
use sqlx::SqliteConnection;

use super::error::Fault;
use super::files::SessionId;
use super::kind::{Kind, number};

/// What is stored of a name, and who holds it, dead or alive.
#[derive(Debug)]
pub(super) struct Hall {
    pub(super) fence: i64,
    pub(super) size: Option<u32>,
    pub(super) queued: i64,
    pub(super) next_ticket: i64,
    pub(super) latch: Option<LatchState>,
    pub(super) holds: Vec<Held>,
}

/// One hold.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) attempt: Option<AttemptId>,
    pub(super) owner: Owner,
    pub(super) kind: Kind,
    pub(super) fence: i64,
}

/// What a hold lives by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// A session, and until when if it has a row.
    Session(Option<SessionId>, Option<i64>),
    /// Its own expiry.
    Detached(i64),
}

/// One place in line.
#[derive(Clone, Debug)]
pub(super) struct Stand {
    pub(super) ticket: i64,
    pub(super) session: Option<SessionId>,
    pub(super) attempt: Option<AttemptId>,
    pub(super) until: Option<i64>,
    pub(super) rung: i64,
    pub(super) passed: bool,
    pub(super) kind: Kind,
}

const ROW: &str = "
SELECT fence, size, queued, next_ticket, latch_of, latch_left FROM lockkit_lock WHERE key = ?1";

const HOLDS: &str = "
SELECT h.attempt, h.session, h.mode, h.amount, h.fence, h.expires_at, s.expires_at
  FROM lockkit_holder h LEFT JOIN lockkit_session s ON s.id = h.session
 WHERE h.key = ?1 ORDER BY h.since, h.fence, h.attempt";

/// From a ticket up to, not including, another one.
const FORWARD: &str = "
SELECT w.ticket, w.session, w.attempt, s.expires_at, w.rung, w.passed, w.mode, w.amount, w.prefer
  FROM lockkit_waiter w LEFT JOIN lockkit_session s ON s.id = w.session
 WHERE w.key = ?1 AND w.ticket < ?2 ORDER BY w.ticket LIMIT ?3";

const NEAREST: &str = "
SELECT w.ticket, w.session, w.attempt, s.expires_at, w.rung, w.passed, w.mode, w.amount, w.prefer
  FROM lockkit_waiter w LEFT JOIN lockkit_session s ON s.id = w.session
 WHERE w.key = ?1 AND w.ticket < ?2 ORDER BY w.ticket DESC LIMIT 1";

const MINE: &str = "
SELECT w.ticket, w.session, w.attempt, s.expires_at, w.rung, w.passed, w.mode, w.amount, w.prefer
  FROM lockkit_waiter w LEFT JOIN lockkit_session s ON s.id = w.session
 WHERE w.key = ?1 AND w.attempt = ?2 AND (?3 IS NULL OR w.ticket = ?3)";

type Row = (i64, Option<i64>, i64, i64, Option<i64>, Option<i64>);
type HeldRow = (
    Vec<u8>,
    Option<Vec<u8>>,
    i64,
    Option<i64>,
    i64,
    Option<i64>,
    Option<i64>,
);
type StandRow = (
    i64,
    Vec<u8>,
    Vec<u8>,
    Option<i64>,
    i64,
    bool,
    i64,
    Option<i64>,
    Option<i64>,
);

impl Hall {
    /// Looks; `None` if the name was never used.
    pub(super) async fn read(sql: &mut SqliteConnection, key: &str) -> Result<Option<Self>, Fault> {
        let row: Option<Row> = sqlx::query_as(ROW)
            .bind(key)
            .fetch_optional(&mut *sql)
            .await?;
        let Some((fence, size, queued, next_ticket, of, left)) = row else {
            return Ok(None);
        };
        let holds: Vec<HeldRow> = sqlx::query_as(HOLDS).bind(key).fetch_all(sql).await?;
        let latch = of.zip(left).map(|(of, left)| LatchState {
            left: number(left),
            of: number(of),
        });
        Ok(Some(Self {
            fence,
            size: size.map(number),
            queued,
            next_ticket,
            latch,
            holds: holds.into_iter().map(Held::new).collect(),
        }))
    }

    pub(super) fn is_open(&self) -> bool {
        self.latch.is_some_and(LatchState::is_open)
    }

    pub(super) fn modes(&self) -> Vec<Mode> {
        let holds = self.holds.iter();
        holds.map(|held| held.kind.mode(self.size)).collect()
    }

    pub(super) fn find(&self, attempt: AttemptId) -> Option<&Held> {
        self.holds.iter().find(|held| held.attempt == Some(attempt))
    }

    /// When the first of the holds ends if nothing is heard of it any more.
    pub(super) fn until(&self) -> Option<i64> {
        self.holds.iter().filter_map(|held| held.until()).min()
    }

    /// The sessions that hold, each once.
    pub(super) fn sessions(&self) -> Vec<SessionId> {
        let mut sessions: Vec<SessionId> = Vec::new();
        for held in &self.holds {
            if let Owner::Session(Some(session), _) = held.owner
                && !sessions.contains(&session)
            {
                sessions.push(session);
            }
        }
        sessions
    }
}

impl Held {
    fn new((attempt, session, mode, amount, fence, expires_at, until): HeldRow) -> Self {
        Self {
            attempt: AttemptId::from_bytes(&attempt),
            owner: match session {
                Some(session) => Owner::Session(SessionId::from_bytes(&session), until),
                None => Owner::Detached(expires_at.unwrap_or(0)),
            },
            kind: Kind {
                mode,
                amount,
                prefer: None,
            },
            fence,
        }
    }

    pub(super) const fn until(&self) -> Option<i64> {
        match self.owner {
            Owner::Session(_, until) => until,
            Owner::Detached(until) => Some(until),
        }
    }
}

impl Stand {
    fn new(row: StandRow) -> Self {
        let (ticket, session, attempt, until, rung, passed, mode, amount, prefer) = row;
        Self {
            ticket,
            session: SessionId::from_bytes(&session),
            attempt: AttemptId::from_bytes(&attempt),
            until,
            rung,
            passed,
            kind: Kind {
                mode,
                amount,
                prefer,
            },
        }
    }

    /// The line up to, not including, a ticket; at most so many.
    pub(super) async fn line(
        sql: &mut SqliteConnection,
        key: &str,
        below: i64,
        limit: i64,
    ) -> Result<Vec<Self>, Fault> {
        let line: Vec<StandRow> = sqlx::query_as(FORWARD)
            .bind(key)
            .bind(below)
            .bind(limit)
            .fetch_all(sql)
            .await?;
        Ok(line.into_iter().map(Self::new).collect())
    }

    /// The last in line before a ticket.
    pub(super) async fn nearest(
        sql: &mut SqliteConnection,
        key: &str,
        below: i64,
    ) -> Result<Option<Self>, Fault> {
        let found: Option<StandRow> = sqlx::query_as(NEAREST)
            .bind(key)
            .bind(below)
            .fetch_optional(sql)
            .await?;
        Ok(found.map(Self::new))
    }

    /// The place of a claim, whose ticket may be known.
    pub(super) async fn of(
        sql: &mut SqliteConnection,
        key: &str,
        attempt: AttemptId,
        ticket: Option<i64>,
    ) -> Result<Option<Self>, Fault> {
        let found: Option<StandRow> = sqlx::query_as(MINE)
            .bind(key)
            .bind(attempt.as_bytes().as_slice())
            .bind(ticket)
            .fetch_optional(sql)
            .await?;
        Ok(found.map(Self::new))
    }
}
