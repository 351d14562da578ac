//! A release that happens unless something else did it.

use std::sync::Arc;
use std::time::Duration;

use crate::HoldId;
use crate::core::Core;

/// Releases an id when dropped, be it by a panic or because a runtime ends.
///
/// Travels with a request that was handed to the runtime.
pub(crate) struct Undo {
    core: Arc<Core>,
    id: Option<HoldId>,
    ttl: Duration,
}

impl Undo {
    pub(crate) fn new(core: &Arc<Core>, id: HoldId, ttl: Duration) -> Self {
        Self {
            core: Arc::clone(core),
            id: Some(id),
            ttl,
        }
    }

    /// Releases now instead of later.
    pub(crate) fn release(&mut self) {
        if let Some(id) = self.id.take() {
            self.core.watchdog.release_later(id, self.ttl);
        }
    }

    /// It was released already.
    pub(crate) fn disarm(&mut self) {
        self.id = None;
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        self.release();
    }
}
