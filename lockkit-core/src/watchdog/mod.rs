//! The one task per backend that keeps holds alive and tells when they are lost.
//!
//! A hold is a row in a table ordered by the moment when something has to be done for it, so a
//! held lock costs neither a task nor a timer. The task sleeps until the first row is due, renews
//! everything that is due soon in one call, ends what ran past its deadline, and sends the
//! releases of dropped guards and cancelled waiters in batches.
//!
//! Calls to the backend run beside the loop, each bounded in time: a service that hangs delays
//! neither the telling of a loss nor the renewals of others.

mod calls;
mod early;
mod load;
mod releases;
mod table;
mod task;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::hold::{Hold, LossReason};
use crate::observe::Observer;
use crate::place::Place;
use crate::{Backend, Clock, Grant, HoldId};
use load::Load;
use table::{Row, Table, Tenant};

pub(crate) struct Watchdog {
    backend: Arc<dyn Backend>,
    clock: Clock,
    call_timeout: Duration,
    observer: Observer,
    table: Mutex<Table>,
    load: Arc<Load>,
    /// Rings when the task has to look earlier than it planned.
    wake: Notify,
    /// Rings when the last outstanding release was answered.
    drained: Notify,
}

/// Whether a grant may become a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    Yes,
    /// The locker has been closed meanwhile.
    Closed,
    /// The service took the hold away while the grant was on its way.
    Gone,
}

impl Watchdog {
    pub(crate) fn new(
        backend: Arc<dyn Backend>,
        call_timeout: Duration,
        observer: Observer,
    ) -> Arc<Self> {
        let clock = backend.descriptor().clock;
        let load = Arc::new(Load::new(observer));
        Arc::new(Self {
            backend,
            clock,
            call_timeout,
            observer,
            table: Mutex::new(Table::new(Arc::clone(&load))),
            load,
            wake: Notify::new(),
            drained: Notify::new(),
        })
    }

    /// Watches a hold: tells its loss, and renews it at a third of its lease if `renewed`.
    pub(crate) fn watch_hold(&self, hold: &Arc<Hold>, grant: Grant, renewed: bool) -> Watched {
        let renew_at = renewed.then(|| table::next_beat(grant.sent_at, grant.ttl));
        let (watched, asked) = self.insert(Row {
            tenant: Tenant::Hold(Arc::clone(hold)),
            ttl: grant.ttl,
            renew_at,
        });
        if asked {
            hold.ask_to_release();
        }
        watched
    }

    /// Keeps a place in line alive, and tells it if the service lost it.
    pub(crate) fn watch_place(&self, place: &Arc<Place>, ttl: Duration) -> Watched {
        let renew_at = Some(table::next_beat(self.clock.now(), ttl));
        let (watched, _) = self.insert(Row {
            tenant: Tenant::Place(Arc::clone(place)),
            ttl,
            renew_at,
        });
        watched
    }

    /// Takes a row in, unless it is too late; and whether it was asked for before it was known.
    fn insert(&self, row: Row) -> (Watched, bool) {
        let attempt = row.tenant.id().attempt();
        let mut table = self.table();
        if table.is_closed() {
            return (Watched::Closed, false);
        }
        if table.early.is_gone(attempt) {
            return (Watched::Gone, false);
        }
        let asked = table.early.is_asked(attempt);
        let due = table.insert(row);
        let earlier = table.planned().is_none_or(|planned| due < planned);
        drop(table);
        if earlier {
            self.wake.notify_one();
        }
        (Watched::Yes, asked)
    }

    /// Forgets a row; its hold is released or handed to another keeper.
    pub(crate) fn forget(&self, id: &HoldId) {
        self.table().remove(id.attempt());
    }

    /// The backend noticed that a hold or a place in line is gone.
    pub(crate) fn gone(&self, id: &HoldId) {
        let attempt = id.attempt();
        let mut table = self.table();
        match table.tenant(attempt) {
            Some(Tenant::Hold(hold)) => {
                let hold = Arc::clone(hold);
                table.remove(attempt);
                drop(table);
                hold.lose(LossReason::Gone);
            }
            Some(Tenant::Place(place)) => {
                let place = Arc::clone(place);
                table.early.note_gone(attempt);
                drop(table);
                place.news.notify_one();
            }
            None => table.early.note_gone(attempt),
        }
    }

    /// The backend was told that somebody wants this hold.
    pub(crate) fn release_requested(&self, id: &HoldId) {
        let mut table = self.table();
        let hold = match table.tenant(id.attempt()) {
            Some(Tenant::Hold(hold)) => Arc::clone(hold),
            // Its grant is on the way.
            Some(Tenant::Place(_)) | None => return table.early.note_asked(id.attempt()),
        };
        drop(table);
        hold.ask_to_release();
    }

    /// The backend was cut off and is back: everything is renewed now, and doubted until then if
    /// the service may have forgotten something.
    pub(crate) fn resumed(&self, doubtful: bool) {
        let now = self.clock.now();
        let mut table = self.table();
        if doubtful {
            table.doubt(now);
        }
        table.renew_all(now);
        drop(table);
        self.wake.notify_one();
    }

    /// Somebody in this process releases an id: a guard of it must not believe in it any more,
    /// and a claim of it ends. `false` if that claim is in the middle of an attempt and releases
    /// it itself.
    pub(crate) fn let_go(&self, id: &HoldId) -> bool {
        let attempt = id.attempt();
        let mut table = self.table();
        let row = table.remove(attempt);
        if row.is_none() {
            // It may be in the middle of its first attempt.
            table.early.note_gone(attempt);
        }
        drop(table);
        match row.map(|row| row.tenant) {
            Some(Tenant::Hold(hold)) => {
                hold.lose(LossReason::Gone);
                true
            }
            Some(Tenant::Place(place)) => {
                let ours = place.withdraw();
                place.news.notify_one();
                ours
            }
            None => true,
        }
    }

    /// How many holds and how many places in line there are, or were a moment ago.
    pub(crate) fn load(&self) -> (usize, usize) {
        (self.load.holds(), self.load.places())
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // Nothing in here panics half-way through a change, so a poisoned table is a sound one.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Watchdog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (holds, places) = self.load();
        f.debug_struct("Watchdog")
            .field("holds", &holds)
            .field("places", &places)
            .finish_non_exhaustive()
    }
}
