//! One hold in the hand of a guard, with the duty to let it go.

use std::sync::Arc;
use std::time::Duration;

use crate::core::Core;
use crate::hold::{Hold, LossReason};
use crate::releasing::Releasing;
use crate::{
    Converted, Error, ErrorKind, HoldId, LockName, Mode, Owner, Released, Renewal, Result, Unlocked,
};

/// One hold of a guard: a guard of a multi-lock has several. Dropping it releases.
pub(crate) struct Part {
    pub(crate) hold: Arc<Hold>,
    pub(crate) core: Arc<Core>,
    ttl: Duration,
    owner: Option<Owner>,
    /// Whether dropping still has to release.
    armed: bool,
    /// Whether nobody can share the hold any more, so that this part does not count.
    secluded: bool,
}

impl Part {
    pub(crate) const fn new(
        core: Arc<Core>,
        hold: Arc<Hold>,
        ttl: Duration,
        owner: Option<Owner>,
    ) -> Self {
        Self {
            hold,
            core,
            ttl,
            owner,
            armed: true,
            secluded: false,
        }
    }

    pub(crate) fn name(&self) -> &LockName {
        self.hold.id.resource().name()
    }

    /// See [`Guard::unlock`](crate::Guard::unlock).
    pub(crate) async fn unlock(mut self) -> Result<Unlocked> {
        self.armed = false;
        let _open = self.core.under_way();
        if !self.hold.unshare() {
            return Ok(self.hold.loss().map_or(Unlocked::Clean, Unlocked::Lost));
        }
        let ended = self.hold.end_by_release();
        self.core.watchdog.forget(&self.hold.id);
        self.forget_owner();
        if let Err(reason) = ended {
            self.release_later();
            return Ok(Unlocked::Lost(reason));
        }
        let releasing = Releasing::new(&self.core, self.hold.id.clone(), self.ttl);
        match self.core.bounded(releasing).await? {
            Released::Done => Ok(Unlocked::Clean),
            Released::NotHeld => Ok(Unlocked::Lost(LossReason::Gone)),
        }
    }

    /// See [`Guard::detach`](crate::Guard::detach).
    pub(crate) async fn detach(mut self, ttl: Duration) -> Result<HoldId> {
        self.core.backend.descriptor().check_ttl(ttl)?;
        let _open = self.core.under_way();
        if !self.hold.seclude() {
            return Err(self.shared_error());
        }
        self.secluded = true;
        if self.hold.loss().is_some() {
            return Err(self.lost_error());
        }
        // If nobody knows how this ends, it has to be undone for as long as it may live.
        self.ttl = self.ttl.max(ttl);
        let extend = async { Ok(self.core.backend.extend(&self.hold.id, ttl).await) };
        match self.core.bounded(extend).await? {
            Renewal::Renewed { .. } => {}
            Renewal::Gone => {
                self.hold.lose(LossReason::Gone);
                return Err(self.lost_error());
            }
            Renewal::Unknown(error) => return Err(error),
        }
        if self.hold.end_by_release().is_err() {
            // It was told as lost meanwhile, and so it is released.
            return Err(self.lost_error());
        }
        self.armed = false;
        self.core.watchdog.forget(&self.hold.id);
        self.forget_owner();
        Ok(self.hold.id.clone())
    }

    /// Changes how it is held; `false` if the service cannot now. After an error, or if the future
    /// is dropped, the part has to be dropped as well: nobody knows how it is held.
    pub(crate) async fn convert(&mut self, mode: Mode) -> Result<bool> {
        let _open = self.core.under_way();
        // While this is locked, no other guard of the owner comes to share the hold.
        let entry = self.owner.as_ref().map(|owner| {
            let owners = &self.core.owners;
            owners.of(self.hold.id.resource(), owner)
        });
        let _entry = match &entry {
            Some(entry) => Some(entry.lock().await),
            None => None,
        };
        if mode == Mode::Shared {
            // A writer that shares its hold may not become a reader behind the other's back; nor
            // may anybody come to share it as a writer once this has failed, for it may be a
            // reader by then.
            if !self.hold.seclude() {
                return Err(self.shared_error());
            }
            self.secluded = true;
        }
        if self.hold.loss().is_some() {
            return Err(self.lost_error());
        }
        let convert = self.core.backend.convert(&self.hold.id, mode);
        match self.core.bounded(convert).await? {
            Converted::Done(fence) => {
                self.hold.converted(mode, fence);
                if std::mem::take(&mut self.secluded) {
                    self.hold.unseclude();
                }
                Ok(true)
            }
            Converted::Busy => Ok(false),
            Converted::NotHeld => {
                self.hold.lose(LossReason::Gone);
                Err(self.lost_error())
            }
        }
    }

    pub(crate) fn lost_error(&self) -> Error {
        let reason = self.hold.loss().unwrap_or(LossReason::Expired);
        lost(&self.core, self.name(), reason).with("fence", self.hold.fence())
    }

    fn shared_error(&self) -> Error {
        let message = "this owner holds other guards of the lock; drop those first";
        self.core.error(ErrorKind::InvalidArgument, message)
    }

    fn forget_owner(&self) {
        if let Some(owner) = &self.owner {
            self.core.owners.tidy(self.hold.id.resource(), owner);
        }
    }

    fn release_later(&self) {
        self.core
            .watchdog
            .release_later(self.hold.id.clone(), self.ttl);
    }
}

pub(crate) fn lost(core: &Core, name: &LockName, reason: LossReason) -> Error {
    let message = format!("{reason}; stop the work, and take the lock again to go on");
    core.error(ErrorKind::Lost, message).with("name", name)
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.armed && (self.secluded || self.hold.unshare()) {
            // However it ended, nobody may believe in it any more, and the service is told.
            let _ = self.hold.end_by_release();
            self.release_later();
            self.forget_owner();
        }
    }
}
