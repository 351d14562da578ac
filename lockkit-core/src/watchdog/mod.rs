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
mod releases;
mod table;
mod task;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::hold::{Hold, LossReason};
use crate::{Backend, Clock, HoldId, Instant};
use table::{Load, Row, Table, Tenant};

pub(crate) struct Watchdog {
    backend: Arc<dyn Backend>,
    clock: Clock,
    call_timeout: Duration,
    table: Mutex<Table>,
    /// The table's counts, to be read without locking it.
    load: Arc<Load>,
    /// Rings when the task has to look earlier than it planned.
    wake: Notify,
    /// Rings when the last outstanding release was answered.
    drained: Notify,
}

impl Watchdog {
    pub(crate) fn new(backend: Arc<dyn Backend>, call_timeout: Duration) -> Arc<Self> {
        let clock = backend.descriptor().clock;
        let load = Arc::<Load>::default();
        Arc::new(Self {
            backend,
            clock,
            call_timeout,
            table: Mutex::new(Table::new(Arc::clone(&load))),
            load,
            wake: Notify::new(),
            drained: Notify::new(),
        })
    }

    /// Watches a hold: tells its loss, and renews it at a third of its lease if `renewed`.
    /// `false` if the locker has been closed meanwhile.
    pub(crate) fn watch_hold(
        &self,
        hold: &Arc<Hold>,
        sent_at: Instant,
        ttl: Duration,
        renewed: bool,
    ) -> bool {
        let renew_at = renewed.then(|| table::next_beat(sent_at, ttl));
        self.insert(Row {
            tenant: Tenant::Hold(Arc::clone(hold)),
            ttl,
            renew_at,
        })
    }

    /// Keeps a place in line alive; `gone` rings if the service lost it.
    /// `false` if the locker has been closed meanwhile.
    pub(crate) fn watch_place(&self, id: &HoldId, ttl: Duration, gone: &Arc<Notify>) -> bool {
        let tenant = Tenant::Place(id.clone(), Arc::clone(gone));
        let renew_at = Some(table::next_beat(self.clock.now(), ttl));
        self.insert(Row {
            tenant,
            ttl,
            renew_at,
        })
    }

    fn insert(&self, row: Row) -> bool {
        let mut table = self.table();
        if table.is_closed() {
            return false;
        }
        let due = table.insert(row);
        let earlier = table.planned().is_none_or(|planned| due < planned);
        drop(table);
        if earlier {
            self.wake.notify_one();
        }
        true
    }

    /// Forgets a row; its hold is released or handed to another keeper.
    pub(crate) fn forget(&self, id: &HoldId) {
        self.table().remove(id.attempt());
    }

    /// The backend noticed that a hold or a place in line is gone.
    pub(crate) fn gone(&self, id: &HoldId) {
        let mut table = self.table();
        match table.tenant(id.attempt()) {
            Some(Tenant::Hold(hold)) => {
                hold.lose(LossReason::Gone);
                table.remove(id.attempt());
            }
            Some(Tenant::Place(_, gone)) => gone.notify_one(),
            None => {}
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
