//! One holder at a time.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::acquire::{Patience, Request, acquire};
use crate::core::Core;
use crate::guard::lost;
use crate::within::within;
use crate::{
    Error, ErrorKind, Guard, Label, LockName, Mode, NameError, Order, Owner, Primitive, Resource,
    Result,
};

/// A lock that one holder has at a time, to be configured and taken.
///
/// Made by [`Locker::mutex`](crate::Locker::mutex). It holds nothing itself: clone it, keep it,
/// share it. Not reentrant unless an [`owner`](Self::owner) is given: taking it twice waits for
/// oneself.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> lockkit_core::Result<()> {
/// use std::time::Duration;
/// use lockkit_core::{ErrorKind, Locker, Memory};
///
/// let locker = Locker::new(Memory::new())?;
/// let report = locker
///     .mutex("nightly-report")
///     .ttl(Duration::from_secs(10))
///     .wait(Duration::from_millis(20))
///     .fair()
///     .label("report of the day");
/// let guard = report.lock().await?;
/// assert_eq!(report.lock().await.unwrap_err().kind(), ErrorKind::Timeout);
/// # drop(guard);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a mutex does nothing until it is locked"]
pub struct Mutex {
    core: Arc<Core>,
    name: Result<LockName, NameError>,
    ttl: Duration,
    wait: Option<Duration>,
    order: Order,
    owner: Option<Owner>,
    label: Option<Arc<str>>,
    renewed: bool,
}

impl Mutex {
    pub(crate) fn new(core: Arc<Core>, name: Result<LockName, NameError>) -> Self {
        let ttl = core.options.ttl;
        Self {
            core,
            name,
            ttl,
            wait: None,
            order: Order::Barging,
            owner: None,
            label: None,
            renewed: true,
        }
    }

    /// The lease to ask for, instead of the locker's default. The watchdog renews it at a third;
    /// the lock of a stopped process is free after one lease.
    pub const fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// How long [`lock`](Self::lock) may wait, instead of for ever. Zero is one attempt.
    pub const fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// First come, first served, instead of letting newcomers pass those who still have to wake
    /// up. Slower under contention, and nobody is ever passed over.
    pub const fn fair(mut self) -> Self {
        self.order = Order::Fair;
        self
    }

    /// Lets this owner take the lock again while it holds it. The guards are counted and share
    /// one fence and one lease; a hold that was lost refuses to be entered again.
    pub fn owner(mut self, owner: &Owner) -> Self {
        self.owner = Some(owner.clone());
        self
    }

    /// A text that shows people who holds the lock; 200 bytes at most.
    pub fn label(mut self, label: impl Into<Arc<str>>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// No renewal: the lock is lost at the end of its first lease, whatever happens.
    pub const fn without_watchdog(mut self) -> Self {
        self.renewed = false;
        self
    }

    /// Waits until the lock is ours.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Timeout`] if [`wait`](Self::wait) ran out; [`ErrorKind::InvalidName`],
    /// [`ErrorKind::InvalidArgument`] or [`ErrorKind::Unsupported`] before any I/O;
    /// [`ErrorKind::Lost`] if the owner's hold was lost; [`ErrorKind::Unavailable`] if the backend
    /// has not answered for a lease; [`ErrorKind::Closed`] once the locker is.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future at any point loses the place in line and leaves nothing behind.
    pub async fn lock(&self) -> Result<Guard> {
        let deadline = self.wait.map(|wait| self.core.clock.now() + wait);
        let patience = match self.wait {
            Some(Duration::ZERO) => Patience::None,
            _ => Patience::Until(deadline),
        };
        match self.take(patience).await? {
            Some(guard) => Ok(guard),
            None => Err(self
                .core
                .error(ErrorKind::Timeout, "somebody else holds the lock")
                .with("name", self.name.as_ref().map_or("", LockName::as_str))),
        }
    }

    /// Takes the lock if it is free; `None` if somebody else holds it.
    ///
    /// # Errors
    ///
    /// As [`lock`](Self::lock), except that it never waits and so never times out;
    /// [`ErrorKind::Unavailable`] if the backend does not answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future at any point leaves nothing behind.
    pub async fn try_lock(&self) -> Result<Option<Guard>> {
        self.take(Patience::None).await
    }

    async fn take(&self, patience: Patience) -> Result<Option<Guard>> {
        let request = self.request(patience)?;
        match &self.owner {
            None => Ok(acquire(&self.core, &request)
                .await?
                .map(|hold| Guard::new(Arc::clone(&self.core), hold, self.ttl, None))),
            Some(owner) => self.take_as(owner, request).await,
        }
    }

    /// Takes the lock for an owner that may hold it already.
    async fn take_as(&self, owner: &Owner, request: Request) -> Result<Option<Guard>> {
        let owners = &self.core.owners;
        // However this ends, dropped half-way included.
        let _tidy = owners.tidied_later(&request.resource, owner);
        let held = owners.of(&request.resource, owner);
        let guard = |hold| {
            let core = Arc::clone(&self.core);
            Guard::new(core, hold, self.ttl, Some(owner.clone()))
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
            let guard = guard(Arc::clone(&hold));
            return match hold.loss() {
                None => Ok(Some(guard)),
                Some(reason) => Err(lost(&self.core, guard.name(), reason)),
            };
        }
        let Some(hold) = acquire(&self.core, &request).await? else {
            return Ok(None);
        };
        *last = Arc::downgrade(&hold);
        Ok(Some(guard(hold)))
    }

    /// Checks everything that can be checked without I/O.
    fn request(&self, patience: Patience) -> Result<Request> {
        let descriptor = self.core.backend.descriptor();
        let name = self
            .name
            .clone()
            .map_err(|error| Error::from(error).on(descriptor.driver))?;
        descriptor.require(Primitive::Mutex)?;
        descriptor.check_ttl(self.ttl)?;
        if self.order == Order::Fair && !descriptor.fair {
            let message = "this backend keeps no order; drop `fair`";
            return Err(self.core.error(ErrorKind::Unsupported, message));
        }
        let label = match &self.label {
            Some(text) => Label::new(&**text)?,
            None => self.core.label.clone(),
        };
        Ok(Request {
            resource: Resource::new(Primitive::Mutex, name),
            mode: Mode::Exclusive,
            order: self.order,
            ttl: self.ttl,
            label,
            patience,
            renewed: self.renewed,
        })
    }
}

impl fmt::Debug for Mutex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutex")
            .field("name", &self.name)
            .field("ttl", &self.ttl)
            .field("order", &self.order)
            .finish_non_exhaustive()
    }
}
