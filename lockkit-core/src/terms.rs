//! What all locks let their users choose, and how they are taken with that.

use std::sync::Arc;
use std::time::Duration;

use crate::acquire::{Patience, Request, acquire};
use crate::core::Core;
use crate::part::{Part, lost};
use crate::within::within;
use crate::{
    Error, ErrorKind, Guard, Label, LockName, Mode, NameError, Order, Owner, Primitive, Resource,
    Result,
};

/// A name of one kind, and how it is to be taken. Checked when it is.
#[derive(Clone)]
pub(crate) struct Terms {
    pub(crate) core: Arc<Core>,
    pub(crate) name: Result<LockName, NameError>,
    pub(crate) primitive: Primitive,
    pub(crate) ttl: Duration,
    pub(crate) wait: Option<Duration>,
    pub(crate) order: Order,
    pub(crate) owner: Option<Owner>,
    pub(crate) label: Option<Arc<str>>,
    pub(crate) renewed: bool,
}

impl Terms {
    pub(crate) fn new(
        core: &Arc<Core>,
        primitive: Primitive,
        name: impl AsRef<str>,
        order: Order,
    ) -> Self {
        Self {
            core: Arc::clone(core),
            name: LockName::new(name),
            primitive,
            ttl: core.options.ttl,
            wait: None,
            order,
            owner: None,
            label: None,
            renewed: true,
        }
    }

    /// Holds, or fails once the time to wait has run out.
    pub(crate) async fn lock(&self, mode: Mode) -> Result<Guard> {
        match self.take(mode, self.patience()).await? {
            Some(guard) => Ok(guard),
            None => Err(self.busy_error()),
        }
    }

    /// Holds if that is possible now.
    pub(crate) async fn try_lock(&self, mode: Mode) -> Result<Option<Guard>> {
        self.take(mode, Patience::None).await
    }

    /// How long it may wait, from now on.
    pub(crate) fn patience(&self) -> Patience {
        match self.wait {
            Some(Duration::ZERO) => Patience::None,
            wait => Patience::Until(wait.map(|wait| self.core.clock.now() + wait)),
        }
    }

    pub(crate) fn busy_error(&self) -> Error {
        let name = self.name.as_ref().map_or("", LockName::as_str);
        self.core
            .error(ErrorKind::Timeout, "somebody else holds the lock")
            .with("name", name)
    }

    async fn take(&self, mode: Mode, patience: Patience) -> Result<Option<Guard>> {
        let request = self.request(mode, patience)?;
        let part = match &self.owner {
            None => acquire(&self.core, &request)
                .await?
                .map(|hold| Part::new(Arc::clone(&self.core), hold, self.ttl, None)),
            Some(owner) => self.take_as(owner, request).await?,
        };
        Ok(part.map(Guard::new))
    }

    /// Holds for an owner that may hold already.
    async fn take_as(&self, owner: &Owner, request: Request) -> Result<Option<Part>> {
        let owners = &self.core.owners;
        // However this ends, dropped half-way included.
        let _tidy = owners.tidied_later(&request.resource, owner);
        let held = owners.of(&request.resource, owner);
        let part = |hold| {
            let core = Arc::clone(&self.core);
            Part::new(core, hold, self.ttl, Some(owner.clone()))
        };
        let limit = match request.patience {
            Patience::None => Duration::ZERO,
            Patience::Until(None) => Duration::MAX,
            Patience::Until(Some(at)) => at.saturating_duration_since(self.core.clock.now()),
        };
        let Some(mut last) = within(limit, held.lock()).await else {
            // Another call of this owner is waiting for the lock right now.
            return Ok(None);
        };
        if let Some(hold) = last.upgrade()
            && hold.share()
        {
            let part = part(Arc::clone(&hold));
            if let Some(reason) = hold.loss() {
                return Err(lost(&self.core, part.name(), reason));
            }
            if hold.mode() == Mode::Shared && request.mode == Mode::Exclusive {
                let message = "this owner reads, and would wait for itself; use `try_upgrade`, or \
                               unlock first";
                return Err(self.core.error(ErrorKind::InvalidArgument, message));
            }
            return Ok(Some(part));
        }
        let Some(hold) = acquire(&self.core, &request).await? else {
            return Ok(None);
        };
        *last = Arc::downgrade(&hold);
        Ok(Some(part(hold)))
    }

    /// The resource, if it has a good name and the backend has the primitive.
    pub(crate) fn resource(&self) -> Result<Resource> {
        let descriptor = self.core.backend.descriptor();
        let name = self
            .name
            .clone()
            .map_err(|error| Error::from(error).on(descriptor.driver))?;
        descriptor.require(self.primitive)?;
        Ok(Resource::new(self.primitive, name))
    }

    /// Checks everything that can be checked without I/O.
    pub(crate) fn request(&self, mode: Mode, patience: Patience) -> Result<Request> {
        let resource = self.resource()?;
        let descriptor = self.core.backend.descriptor();
        descriptor.check_ttl(self.ttl)?;
        if self.order == Order::Fair {
            descriptor.require_fair()?;
        }
        let label = match &self.label {
            Some(text) => Label::new(&**text)?,
            None => self.core.label.clone(),
        };
        Ok(Request {
            resource,
            mode,
            order: self.order,
            ttl: self.ttl,
            label,
            patience,
            renewed: self.renewed,
        })
    }
}

/// The choices that a lock with a field `terms` offers.
macro_rules! choices {
    (lease) => {
        choices!(ttl);
        choices!(label);

        /// No renewal: the hold is lost at the end of its first lease, whatever happens.
        pub const fn without_watchdog(mut self) -> Self {
            self.terms.renewed = false;
            self
        }
    };
    (ttl) => {
        /// The lease to ask for, instead of the locker's default. The watchdog renews it at a
        /// third; what a stopped process holds is free after one lease.
        pub const fn ttl(mut self, ttl: Duration) -> Self {
            self.terms.ttl = ttl;
            self
        }
    };
    (label) => {
        /// A text that shows people who holds or waits; 200 bytes at most.
        pub fn label(mut self, label: impl Into<Arc<str>>) -> Self {
            self.terms.label = Some(label.into());
            self
        }
    };
    (resource) => {
        /// What this is about, for [`Locker::inspect`](crate::Locker::inspect),
        /// [`request_release`](crate::Locker::request_release) and the like.
        ///
        /// # Errors
        ///
        /// [`InvalidName`](crate::ErrorKind::InvalidName) for a bad name,
        /// [`Unsupported`](crate::ErrorKind::Unsupported) if the backend has no such primitive.
        pub fn resource(&self) -> Result<crate::Resource> {
            self.terms.resource()
        }
    };
    (wait) => {
        /// How long to wait at most, instead of for ever. Zero is one attempt.
        pub const fn wait(mut self, wait: Duration) -> Self {
            self.terms.wait = Some(wait);
            self
        }
    };
    (owner) => {
        /// Lets this owner take the lock again while it holds it. The guards are counted and
        /// share one fence and one lease; a hold that was lost refuses to be entered again.
        pub fn owner(mut self, owner: &Owner) -> Self {
            self.terms.owner = Some(owner.clone());
            self
        }
    };
}
pub(crate) use choices;

/// The [`Debug`](std::fmt::Debug) of a lock with a field `terms`.
macro_rules! debug_terms {
    ($lock:ident) => {
        impl std::fmt::Debug for $lock {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.terms.show(stringify!($lock), f)
            }
        }
    };
}
pub(crate) use debug_terms;

impl Terms {
    pub(crate) fn show(&self, lock: &str, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct(lock)
            .field("name", &self.name)
            .field("ttl", &self.ttl)
            .field("wait", &self.wait)
            .field("order", &self.order)
            .finish_non_exhaustive()
    }
}
