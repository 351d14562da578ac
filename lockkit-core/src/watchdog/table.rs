//! The rows, ordered by when something has to be done for them.
//!
//! Nothing in here tells anybody anything: telling wakes tasks, and a waker may run code that
//! comes back to the table. What is to be told is given to the caller, who does so after letting
//! go of the table's lock.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use foldhash::HashMap;

use super::early::Early;
use super::load::Load;
use super::releases::Releases;
use crate::hold::Hold;
use crate::place::Place;
use crate::validity::kept_back;
use crate::{AttemptId, HoldId, Instant};

/// Whose row it is.
pub(super) enum Tenant {
    Hold(Arc<Hold>),
    Place(Arc<Place>),
}

impl Tenant {
    pub(super) fn id(&self) -> &HoldId {
        match self {
            Self::Hold(hold) => &hold.id,
            Self::Place(place) => &place.id,
        }
    }
}

pub(super) struct Row {
    pub(super) tenant: Tenant,
    pub(super) ttl: Duration,
    /// When to renew next; `None` for a hold that is never renewed.
    pub(super) renew_at: Option<Instant>,
}

impl Row {
    /// When something has to be done: a renewal, or telling that the deadline has passed.
    fn due(&self) -> Instant {
        let deadline = match &self.tenant {
            Tenant::Hold(hold) => Some(hold.valid_until()),
            Tenant::Place(_) => None,
        };
        let far = Instant::from_nanos(u64::MAX);
        self.renew_at.unwrap_or(far).min(deadline.unwrap_or(far))
    }
}

/// One renewal to be asked for.
pub(super) struct Due {
    pub(super) id: HoldId,
    pub(super) ttl: Duration,
    /// Whether it was a place in line when asked: an answer about that says nothing about the
    /// hold that it may have become.
    pub(super) place: bool,
}

/// When to renew a lease that was confirmed for `ttl` from `sent_at`: at a third, up to a tenth
/// earlier, so that processes that started together drift apart.
pub(super) fn next_beat(sent_at: Instant, ttl: Duration) -> Instant {
    let third = ttl / 3;
    let tenths_of_256 = u32::from(rand::random::<u8>());
    sent_at + third.saturating_sub(third / 2_560 * tenths_of_256)
}

pub(super) struct Table {
    rows: HashMap<AttemptId, (Instant, Row)>,
    order: BTreeSet<(Instant, AttemptId)>,
    load: Arc<Load>,
    pub(super) early: Early,
    /// When the task will look next by itself; `None` while it waits to be rung.
    planned: Option<Instant>,
    closed: bool,
    pub(super) releases: Releases,
}

impl Table {
    pub(super) fn new(load: Arc<Load>) -> Self {
        Self {
            rows: HashMap::default(),
            order: BTreeSet::new(),
            load,
            early: Early::default(),
            planned: None,
            closed: false,
            releases: Releases::default(),
        }
    }

    pub(super) fn insert(&mut self, row: Row) -> Instant {
        let (due, attempt) = (row.due(), row.tenant.id().attempt());
        self.load.count(&row.tenant, 1);
        // A place in line that became a hold keeps its id.
        if let Some((due, row)) = self.rows.insert(attempt, (due, row)) {
            self.order.remove(&(due, attempt));
            self.load.count(&row.tenant, -1);
        }
        self.order.insert((due, attempt));
        due
    }

    pub(super) fn remove(&mut self, attempt: AttemptId) -> Option<Row> {
        let (due, row) = self.rows.remove(&attempt)?;
        self.order.remove(&(due, attempt));
        self.load.count(&row.tenant, -1);
        Some(row)
    }

    pub(super) fn tenant(&self, attempt: AttemptId) -> Option<&Tenant> {
        self.rows.get(&attempt).map(|(_, row)| &row.tenant)
    }

    /// Changes a row and puts it in its new place.
    pub(super) fn update(&mut self, attempt: AttemptId, change: impl FnOnce(&mut Row)) {
        let Some((due, row)) = self.rows.get_mut(&attempt) else {
            return;
        };
        self.order.remove(&(*due, attempt));
        change(row);
        *due = row.due();
        self.order.insert((*due, attempt));
    }

    /// Nobody believes in any hold until a renewal from now on confirms it.
    pub(super) fn doubt(&self, now: Instant) {
        for (_, row) in self.rows.values() {
            if let Tenant::Hold(hold) = &row.tenant {
                hold.doubt(now);
            }
        }
    }

    /// Makes the renewal of everything due that is renewed at all.
    pub(super) fn renew_all(&mut self, now: Instant) {
        let attempts: Vec<AttemptId> = self.rows.keys().copied().collect();
        for attempt in attempts {
            self.update(attempt, |row| row.renew_at = row.renew_at.map(|_| now));
        }
    }

    /// Takes out every hold whose deadline has passed, to be told.
    ///
    /// The service is told when the lease ends there, too: where a session carries the lease it
    /// may go on for others of the session. Not earlier, because the time in between is for the
    /// holder to act on the news.
    pub(super) fn expire(&mut self, now: Instant) -> Vec<Arc<Hold>> {
        let due = self.order.iter().take_while(|(due, _)| *due <= now);
        let expired: Vec<Arc<Hold>> = due
            .filter_map(|(_, attempt)| match &self.rows[attempt].1.tenant {
                Tenant::Hold(hold) if hold.valid_until() <= now => Some(Arc::clone(hold)),
                _ => None,
            })
            .collect();
        for hold in &expired {
            if let Some(row) = self.remove(hold.id.attempt()) {
                let lease_ends = hold.valid_until() + kept_back(row.ttl);
                self.releases
                    .push(hold.id.clone(), lease_ends.max(now), row.ttl);
            }
        }
        expired
    }

    /// What to renew now: if anything is due, then everything that would be due within half a
    /// beat as well, so that holds taken at different times end up in one call per beat.
    ///
    /// Each of them is set to be due again after a beat: if nothing is heard of this call, that is
    /// the next try; its answer moves the row.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<Due> {
        let due_by = |row: &Row, at: Instant| row.renew_at.is_some_and(|renew| renew <= at);
        let row = |attempt: &AttemptId| &self.rows[attempt].1;
        let due = self.order.iter().take_while(|(due, _)| *due <= now);
        let longest = due
            .map(|(_, attempt)| row(attempt))
            .filter(|row| due_by(row, now))
            .map(|row| row.ttl)
            .max();
        let Some(longest) = longest else {
            return Vec::new();
        };
        let horizon = now + longest / 6;
        let batch: Vec<AttemptId> = self
            .order
            .iter()
            .take_while(|(due, _)| *due <= horizon)
            .map(|(_, attempt)| *attempt)
            .filter(|attempt| due_by(row(attempt), now + row(attempt).ttl / 6))
            .collect();
        let mut taken = Vec::with_capacity(batch.len());
        for attempt in batch {
            self.update(attempt, |row| {
                row.renew_at = Some(now + row.ttl / 3);
                taken.push(Due {
                    id: row.tenant.id().clone(),
                    ttl: row.ttl,
                    place: matches!(row.tenant, Tenant::Place(_)),
                });
            });
        }
        taken
    }

    /// The moment at which the task has to look again, noted so that it is rung only for what is
    /// due earlier.
    pub(super) fn plan(&mut self, now: Instant, longest_sleep: Duration) -> Option<Instant> {
        let rows = self
            .order
            .first()
            .map(|(due, _)| (*due).min(now + longest_sleep));
        self.planned = match (rows, self.releases.next_due()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        self.planned
    }

    pub(super) const fn planned(&self) -> Option<Instant> {
        self.planned
    }

    pub(super) const fn is_closed(&self) -> bool {
        self.closed
    }

    /// Lets nobody in any more and takes all rows out; `true` the first time.
    pub(super) fn close(&mut self) -> (bool, Vec<Row>) {
        let first = !std::mem::replace(&mut self.closed, true);
        self.order.clear();
        let rows: Vec<Row> = self.rows.drain().map(|(_, (_, row))| row).collect();
        for row in &rows {
            self.load.count(&row.tenant, -1);
        }
        (first, rows)
    }
}
