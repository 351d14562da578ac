//! News from a backend that nobody asked for.

use std::fmt;
use std::sync::Weak;

use crate::HoldId;
use crate::watchdog::Watchdog;

/// Where a backend reports what it notices by itself. Cheap to clone; it never blocks, and does
/// nothing once the locker is gone.
#[derive(Clone, Default)]
pub struct Notices(Weak<Watchdog>);

impl Notices {
    pub(crate) const fn new(watchdog: Weak<Watchdog>) -> Self {
        Self(watchdog)
    }

    /// This hold is gone on the service. Its guard reports the loss at once, for good.
    pub fn gone(&self, id: &HoldId) {
        if let Some(watchdog) = self.0.upgrade() {
            watchdog.gone(id);
        }
    }

    /// Somebody asks the holder to let go. Its guard tells whoever wants to know.
    ///
    /// To say it again changes nothing. So a backend whose messages can be lost keeps the request with
    /// the hold and says it with each renewal.
    pub fn release_requested(&self, id: &HoldId) {
        if let Some(watchdog) = self.0.upgrade() {
            watchdog.release_requested(id);
        }
    }

    /// The backend was cut off from its service and is back. Every hold and every place in line is
    /// renewed at once, so that whatever changed meanwhile is known; the backend lets the
    /// [`changed`](crate::Ticket::changed) of each ticket return besides.
    ///
    /// `doubtful` if the service may have forgotten what it had confirmed, because another server took
    /// over or the same one started anew: then nobody believes in a hold any more until a renewal
    /// that is sent from now on confirms it.
    pub fn resumed(&self, doubtful: bool) {
        if let Some(watchdog) = self.0.upgrade() {
            watchdog.resumed(doubtful);
        }
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notices").finish_non_exhaustive()
    }
}
