//! The rows, ordered by when something has to be done for them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use foldhash::HashMap;
use tokio::sync::Notify;

use super::releases::Releases;
use crate::hold::{Hold, LossReason};
use crate::validity::kept_back;
use crate::{AttemptId, HoldId, Instant};

/// Whose row it is.
pub(super) enum Tenant {
    Hold(Arc<Hold>),
    /// A place in line, and whom to ring if the service lost it.
    Place(HoldId, Arc<Notify>),
}

impl Tenant {
    pub(super) fn id(&self) -> &HoldId {
        match self {
            Self::Hold(hold) => &hold.id,
            Self::Place(id, _) => id,
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
            Tenant::Place(..) => None,
        };
        let far = Instant::from_nanos(u64::MAX);
        self.renew_at.unwrap_or(far).min(deadline.unwrap_or(far))
    }
}

/// When to renew a lease that was confirmed for `ttl` from `sent_at`: at a third, up to a tenth
/// earlier, so that processes that started together drift apart.
pub(super) fn next_beat(sent_at: Instant, ttl: Duration) -> Instant {
    let third = ttl / 3;
    let tenths_of_256 = u32::from(rand::random::<u8>());
    sent_at + third.saturating_sub(third / 2_560 * tenths_of_256)
}

/// How many rows of each kind there are.
#[derive(Default)]
pub(super) struct Load {
    holds: AtomicUsize,
    places: AtomicUsize,
}

impl Load {
    pub(super) fn holds(&self) -> usize {
        self.holds.load(Relaxed)
    }

    pub(super) fn places(&self) -> usize {
        self.places.load(Relaxed)
    }

    fn of(&self, tenant: &Tenant) -> &AtomicUsize {
        match tenant {
            Tenant::Hold(_) => &self.holds,
            Tenant::Place(..) => &self.places,
        }
    }

    /// Only the table counts, under its lock.
    fn count(&self, tenant: &Tenant, change: impl FnOnce(usize) -> usize) {
        let count = self.of(tenant);
        count.store(change(count.load(Relaxed)), Relaxed);
    }
}

pub(super) struct Table {
    rows: HashMap<AttemptId, (Instant, Row)>,
    order: BTreeSet<(Instant, AttemptId)>,
    load: Arc<Load>,
    /// The longest lease of any row so far: bounds how far ahead a batch looks.
    longest: Duration,
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
            longest: Duration::ZERO,
            planned: None,
            closed: false,
            releases: Releases::default(),
        }
    }

    pub(super) fn insert(&mut self, row: Row) -> Instant {
        let (due, attempt) = (row.due(), row.tenant.id().attempt());
        self.load.count(&row.tenant, |n| n + 1);
        self.longest = self.longest.max(row.ttl);
        // A place in line that became a hold keeps its id.
        if let Some((due, row)) = self.rows.insert(attempt, (due, row)) {
            self.order.remove(&(due, attempt));
            self.load.count(&row.tenant, |n| n - 1);
        }
        self.order.insert((due, attempt));
        due
    }

    pub(super) fn remove(&mut self, attempt: AttemptId) -> Option<Row> {
        let (due, row) = self.rows.remove(&attempt)?;
        self.order.remove(&(due, attempt));
        self.load.count(&row.tenant, |n| n - 1);
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

    /// Ends every hold whose deadline has passed and forgets its row.
    ///
    /// The service is told when the lease ends there, too: where a session carries the lease it
    /// may go on for others of the session. Not earlier, because the time in between is for the
    /// holder to act on the news.
    pub(super) fn expire(&mut self, now: Instant) {
        let due: Vec<AttemptId> = self
            .order
            .iter()
            .take_while(|(due, _)| *due <= now)
            .map(|(_, id)| *id)
            .collect();
        for attempt in due {
            if let Some(Tenant::Hold(hold)) = self.tenant(attempt)
                && hold.loss().is_some()
            {
                let (id, until) = (hold.id.clone(), hold.valid_until());
                if let Some(row) = self.remove(attempt) {
                    let lease_ends = until + kept_back(row.ttl);
                    self.releases.push(id, lease_ends.max(now), row.ttl);
                }
            }
        }
    }

    /// What to renew now: if anything is due, then everything that would be due within half a
    /// beat as well, so that holds taken at different times end up in one call per beat.
    ///
    /// Each of them is set to be due again after `retry`: if this call fails or hangs, that is
    /// the next try; if it succeeds, its answer moves the row.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<(HoldId, Duration)> {
        let due_by = |row: &Row, at: Instant| row.renew_at.is_some_and(|renew| renew <= at);
        let row = |attempt: &AttemptId| &self.rows[attempt].1;
        let first = self.order.iter().take_while(|(due, _)| *due <= now);
        if !first.map(|(_, id)| row(id)).any(|row| due_by(row, now)) {
            return Vec::new();
        }
        let horizon = now + self.longest / 6;
        let batch: Vec<AttemptId> = self
            .order
            .iter()
            .take_while(|(due, _)| *due <= horizon)
            .map(|(_, id)| *id)
            .filter(|id| due_by(row(id), now + row(id).ttl / 6))
            .collect();
        let mut taken = Vec::with_capacity(batch.len());
        for attempt in batch {
            self.update(attempt, |row| {
                row.renew_at = Some(now + row.ttl / 3);
                taken.push((row.tenant.id().clone(), row.ttl));
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

    /// Lets nobody in any more and takes all rows out, the holds lost.
    pub(super) fn close(&mut self) -> Vec<Row> {
        self.closed = true;
        self.order.clear();
        let rows: Vec<Row> = self.rows.drain().map(|(_, (_, row))| row).collect();
        for row in &rows {
            self.load.count(&row.tenant, |n| n - 1);
            if let Tenant::Hold(hold) = &row.tenant {
                hold.lose(LossReason::Closed);
            }
        }
        rows
    }
}
