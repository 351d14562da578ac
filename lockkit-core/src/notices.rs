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
    pub fn release_requested(&self, id: &HoldId) {
        if let Some(watchdog) = self.0.upgrade() {
            watchdog.release_requested(id);
        }
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notices").finish_non_exhaustive()
    }
}
