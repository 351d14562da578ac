//! What the parts of one backend share.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use lockkit_core::{HoldId, Notices};

use super::bell::Bell;
use super::config::Options;
use super::files::{Files, SessionId};
use super::registry::Registry;
use super::session::Session;

/// One backend's state outside the database.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: Options,
    pub(super) files: Files,
    pub(super) registry: Registry,
    pub(super) bell: Bell,
    pub(super) notices: OnceLock<Notices>,
}

impl Shared {
    /// A session of ours is over: its holds are gone, and those who wait start again.
    pub(super) fn end_session(&self, session: &Arc<Session>) {
        let (gone, waiting) = self.registry.end(session);
        self.files.remove_session(session.id);
        for waiter in waiting {
            waiter.changed.notify_one();
        }
        if let Some(notices) = self.notices.get() {
            gone.iter().for_each(|id| notices.gone(id));
        }
    }

    /// A hold of ours was taken away.
    pub(super) fn lose(&self, id: &HoldId) {
        self.registry.forget(id.attempt());
        if let Some(notices) = self.notices.get() {
            notices.gone(id);
        }
    }

    /// Somebody wants a hold of ours.
    pub(super) fn ask(&self, id: &HoldId) {
        if let Some(notices) = self.notices.get() {
            notices.release_requested(id);
        }
    }

    /// The database is no longer the one that we wrote to.
    pub(super) fn end_all_sessions(&self) {
        self.registry
            .sessions()
            .iter()
            .for_each(|session| self.end_session(session));
    }

    /// Whether a session is over for everybody: its row is missing, its lease has run out, or the
    /// last process that had its file open is gone.
    pub(super) fn is_dead(&self, id: SessionId, expires_at: Option<i64>, now_ms: i64) -> bool {
        match expires_at {
            None => true,
            Some(expires_at) if expires_at <= now_ms => true,
            Some(_) => !self.registry.owns(id) && self.files.is_abandoned(id),
        }
    }
}

/// Nothing here can leave state half-changed by a panic.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
