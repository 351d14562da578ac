//! A place in line, as its claim and the watchdog share it.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use tokio::sync::Notify;

use crate::HoldId;

/// A place in line.
///
/// A release must never run beside an attempt of the same id. Two flags decide who may send what:
/// the claim raises `attempting` and then looks at `withdrawn`; whoever withdraws raises
/// `withdrawn` and then looks at `attempting`. At least one of the two sees the other.
pub(crate) struct Place {
    pub(crate) id: HoldId,
    attempting: AtomicBool,
    withdrawn: AtomicBool,
    /// Rings when another attempt is due because the service lost the place, or because it was
    /// withdrawn.
    pub(crate) news: Notify,
}

impl Place {
    /// The place of a claim that is in the middle of an attempt.
    pub(crate) fn new(id: HoldId) -> Self {
        Self {
            id,
            attempting: AtomicBool::new(true),
            withdrawn: AtomicBool::new(false),
            news: Notify::new(),
        }
    }

    /// Whether another attempt may be sent; if so, nobody withdraws until [`rest`](Self::rest).
    pub(crate) fn begin_attempt(&self) -> bool {
        self.attempting.store(true, SeqCst);
        !self.is_withdrawn()
    }

    pub(crate) fn rest(&self) {
        self.attempting.store(false, SeqCst);
    }

    /// Ends the claim. `true` if the caller now has to release the place; `false` if the claim is
    /// in the middle of an attempt and will do so itself.
    pub(crate) fn withdraw(&self) -> bool {
        self.withdrawn.store(true, SeqCst);
        !self.attempting.load(SeqCst)
    }

    pub(crate) fn is_withdrawn(&self) -> bool {
        self.withdrawn.load(SeqCst)
    }
}
