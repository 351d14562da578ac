//! Looking, for people.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use lockkit_core::{
    AttemptId, Clock, Fence, HoldId, Holder, Label, LatchState, Order, Primitive, Resource,
    Snapshot, Waiter,
};
use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, Row};

use super::connection::Connection;
use super::error::Fault;
use super::files::SessionId;
use super::kind::{Kind, number};
use super::schema::VERSION;
use super::session::{millis, remaining};
use super::shared::Shared;

struct HeldRow {
    key: String,
    session: Option<Vec<u8>>,
    attempt: Vec<u8>,
    fence: i64,
    expires_at: Option<i64>,
    since: i64,
    label: String,
    holder_until: Option<i64>,
    kind: Kind,
    asked: bool,
}

/// What is stored with a name, whether or not anybody holds it.
struct NameRow {
    key: String,
    fence: i64,
    size: Option<i64>,
    latch_of: Option<i64>,
    latch_left: Option<i64>,
}

impl FromRow<'_, SqliteRow> for NameRow {
    fn from_row(row: &SqliteRow) -> sqlx::Result<Self> {
        Ok(Self {
            key: row.try_get("key")?,
            fence: row.try_get("fence")?,
            size: row.try_get("size")?,
            latch_of: row.try_get("latch_of")?,
            latch_left: row.try_get("latch_left")?,
        })
    }
}

impl FromRow<'_, SqliteRow> for HeldRow {
    fn from_row(row: &SqliteRow) -> sqlx::Result<Self> {
        Ok(Self {
            key: row.try_get("key")?,
            session: row.try_get("session")?,
            attempt: row.try_get("attempt")?,
            fence: row.try_get("fence")?,
            expires_at: row.try_get("expires_at")?,
            since: row.try_get("since")?,
            label: row.try_get("label")?,
            holder_until: row.try_get("holder_until")?,
            kind: kind(row)?,
            asked: row.try_get("asked")?,
        })
    }
}

struct WaiterRow {
    key: String,
    session: Vec<u8>,
    attempt: Vec<u8>,
    fair: bool,
    since: i64,
    label: String,
    until: Option<i64>,
    kind: Kind,
}

impl FromRow<'_, SqliteRow> for WaiterRow {
    fn from_row(row: &SqliteRow) -> sqlx::Result<Self> {
        Ok(Self {
            key: row.try_get("key")?,
            session: row.try_get("session")?,
            attempt: row.try_get("attempt")?,
            fair: row.try_get("fair")?,
            since: row.try_get("since")?,
            label: row.try_get("label")?,
            until: row.try_get("until")?,
            kind: kind(row)?,
        })
    }
}

fn kind(row: &SqliteRow) -> sqlx::Result<Kind> {
    Ok(Kind {
        mode: row.try_get("mode")?,
        amount: row.try_get("amount")?,
        prefer: row.try_get("prefer")?,
    })
}

/// Keys from `?1` up to, not including, `?2`.
const NAMES: &str = "
SELECT l.key, l.fence, l.size, l.latch_of, l.latch_left FROM lockkit_lock l
 WHERE l.key >= ?1 AND l.key < ?2
   AND (?3 OR l.attempt IS NOT NULL OR l.queued > 0 OR l.latch_left > 0
        OR EXISTS (SELECT 1 FROM lockkit_holder h WHERE h.key = l.key))";

const HOLDS: &str = "
SELECT l.key, l.session, l.attempt, l.fence, l.expires_at, l.since, l.label,
       s.expires_at AS holder_until, 0 AS mode, NULL AS amount, NULL AS prefer,
       l.asked IS l.attempt AS asked
  FROM lockkit_lock l LEFT JOIN lockkit_session s ON s.id = l.session
 WHERE l.key >= ?1 AND l.key < ?2 AND l.attempt IS NOT NULL
UNION ALL
SELECT h.key, h.session, h.attempt, h.fence, h.expires_at, h.since, h.label,
       s.expires_at, h.mode, h.amount, NULL, h.asked
  FROM lockkit_holder h LEFT JOIN lockkit_session s ON s.id = h.session
 WHERE h.key >= ?1 AND h.key < ?2
 ORDER BY 1, 6, 4, 3";

const WAITERS: &str = "
SELECT w.key, w.session, w.attempt, w.fair, w.since, w.label, s.expires_at AS until,
       w.mode, w.amount, w.prefer
  FROM lockkit_waiter w LEFT JOIN lockkit_session s ON s.id = w.session
 WHERE w.key >= ?1 AND w.key < ?2 AND w.passed = 0 ORDER BY w.key, w.ticket";

/// Above every byte that a key has.
const ABOVE: char = '\u{7f}';

impl Connection {
    pub(super) async fn inspect(&mut self, resource: &Resource) -> Result<Snapshot, Fault> {
        let key = resource.key();
        let mut found = self.snapshots(&key, &format!("{key}{ABOVE}"), true).await?;
        Ok(found
            .remove(resource)
            .unwrap_or_else(|| Snapshot::idle(resource.clone(), None)))
    }

    pub(super) async fn list(&mut self, prefix: &str) -> Result<Vec<Snapshot>, Fault> {
        let mut listed = Vec::new();
        for primitive in Primitive::ALL {
            // Encoding goes byte by byte, so the encoded prefix begins every encoded name.
            let Some(from) = key_prefix(primitive, prefix) else {
                continue;
            };
            listed.extend(
                self.snapshots(&from, &format!("{from}{ABOVE}"), false)
                    .await?,
            );
        }
        let mut listed: Vec<Snapshot> = listed.into_iter().map(|(_, snapshot)| snapshot).collect();
        listed.retain(|snapshot| !snapshot.is_idle());
        Ok(listed)
    }

    async fn snapshots(
        &mut self,
        from: &str,
        below: &str,
        idle: bool,
    ) -> Result<BTreeMap<Resource, Snapshot>, Fault> {
        let shared = self.shared();
        let sql = self.read().await?;
        // One transaction, for one moment.
        sqlx::query("BEGIN").execute(&mut *sql).await?;
        let names = sqlx::query_as::<_, NameRow>(NAMES)
            .bind(from)
            .bind(below)
            .bind(idle)
            .fetch_all(&mut *sql)
            .await;
        let holds = sqlx::query_as::<_, HeldRow>(HOLDS)
            .bind(from)
            .bind(below)
            .fetch_all(&mut *sql)
            .await;
        let waiters = sqlx::query_as::<_, WaiterRow>(WAITERS)
            .bind(from)
            .bind(below)
            .fetch_all(&mut *sql)
            .await;
        sqlx::query("ROLLBACK").execute(&mut *sql).await?;
        let now_ms = millis(Clock::Boot.now());
        let mut alive = Alive {
            shared: &shared,
            now_ms,
            known: HashMap::new(),
        };
        let mut snapshots = BTreeMap::new();
        for row in names? {
            let Some(resource) = Resource::from_key(&row.key) else {
                continue;
            };
            let fence = (row.fence > 0).then(|| Fence::new(row.fence.unsigned_abs()));
            let latch = row
                .latch_of
                .zip(row.latch_left)
                .map(|(of, left)| LatchState {
                    left: number(left),
                    of: number(of),
                });
            let snapshot = Snapshot {
                size: row.size.map(number),
                latch,
                ..Snapshot::idle(resource.clone(), fence)
            };
            snapshots.insert(resource, snapshot);
        }
        for row in holds? {
            let snapshot = Resource::from_key(&row.key).and_then(|key| snapshots.get_mut(&key));
            let Some(snapshot) = snapshot else { continue };
            let holder = holder(&mut alive, snapshot, &row);
            snapshot.holders.extend(holder);
        }
        for row in waiters? {
            let snapshot = Resource::from_key(&row.key).and_then(|key| snapshots.get_mut(&key));
            let Some(snapshot) = snapshot else { continue };
            let waiter = waiter(&mut alive, snapshot, &row);
            snapshot.waiters.extend(waiter);
        }
        Ok(snapshots)
    }

    pub(super) async fn probe(&mut self) -> Result<Vec<(&'static str, String)>, Fault> {
        let shared = self.shared();
        let sql = self.read().await?;
        let (version,): (String,) = sqlx::query_as("SELECT sqlite_version()")
            .fetch_one(&mut *sql)
            .await?;
        let (journal,): (String,) = sqlx::query_as("PRAGMA journal_mode")
            .fetch_one(&mut *sql)
            .await?;
        let (synchronous,): (i64,) = sqlx::query_as("PRAGMA synchronous")
            .fetch_one(&mut *sql)
            .await?;
        let synchronous = ["off", "normal", "full", "extra"]
            .get(usize::try_from(synchronous).unwrap_or(usize::MAX))
            .map_or_else(|| synchronous.to_string(), ToString::to_string);
        Ok(vec![
            ("path", shared.files.database().display().to_string()),
            ("sqlite", version),
            ("journal_mode", journal),
            ("synchronous", synchronous),
            ("schema", VERSION.to_string()),
            ("bytes", shared.files.size().to_string()),
            ("wake_up", shared.bell.kind().into()),
        ])
    }
}

fn key_prefix(primitive: Primitive, prefix: &str) -> Option<String> {
    if prefix.is_empty() {
        return Some(format!("{primitive}/"));
    }
    // Longer than any name: nothing begins with it.
    let prefix = lockkit_core::LockName::new(prefix).ok()?;
    Some(format!("{primitive}/{}", prefix.encoded()))
}

/// Who is alive, each asked once: some sessions carry thousands of holds.
struct Alive<'a> {
    shared: &'a Shared,
    now_ms: i64,
    known: HashMap<SessionId, bool>,
}

impl Alive<'_> {
    fn is_alive(&mut self, id: SessionId, until: Option<i64>) -> bool {
        let Self {
            shared,
            now_ms,
            known,
        } = self;
        *known
            .entry(id)
            .or_insert_with(|| !shared.is_dead(id, until, *now_ms))
    }
}

fn holder(alive: &mut Alive<'_>, snapshot: &Snapshot, row: &HeldRow) -> Option<Holder> {
    let attempt = AttemptId::from_bytes(&row.attempt)?;
    let until = match &row.session {
        Some(session) => {
            let session = SessionId::from_bytes(session)?;
            row.holder_until
                .filter(|until| alive.is_alive(session, Some(*until)))?
        }
        None => row.expires_at.filter(|until| *until > alive.now_ms)?,
    };
    Some(Holder {
        id: HoldId::new(snapshot.resource.clone(), attempt),
        mode: row.kind.mode(snapshot.size),
        fence: Fence::new(row.fence.unsigned_abs()),
        label: Label::decode(&row.label),
        held_for: since(row.since, alive.now_ms),
        // Stored rounded up; nobody is shown more than was granted.
        remaining: remaining(alive.now_ms + 1, until),
        detached: row.session.is_none(),
        asked_to_release: row.asked,
    })
}

fn waiter(alive: &mut Alive<'_>, snapshot: &Snapshot, row: &WaiterRow) -> Option<Waiter> {
    if !alive.is_alive(SessionId::from_bytes(&row.session)?, row.until) {
        return None;
    }
    Some(Waiter {
        id: HoldId::new(
            snapshot.resource.clone(),
            AttemptId::from_bytes(&row.attempt)?,
        ),
        mode: row.kind.mode(snapshot.size),
        order: if row.fair {
            Order::Fair
        } else {
            Order::Barging
        },
        label: Label::decode(&row.label),
        waited: since(row.since, alive.now_ms),
    })
}

fn since(then_ms: i64, now_ms: i64) -> Duration {
    remaining(then_ms, now_ms)
}
