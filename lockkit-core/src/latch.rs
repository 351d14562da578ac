//! A count that opens at zero.

use std::sync::Arc;
use std::time::Duration;

use crate::acquire::{Patience, pass};
use crate::core::Core;
use crate::terms::{Terms, choices, debug_terms};
use crate::{
    CountDown, Error, ErrorKind, LatchState, LockName, Mode, Order, Primitive, Result, Snapshot,
};

/// A count that is set once, counted down by participants, and waited for by anybody.
///
/// Made by [`Locker::latch`](crate::Locker::latch). It is closed from the time it is set until
/// every participant has come, and open from then on: whoever comes to wait after that returns at
/// once. A latch that was never set is not open: who waits for it waits until it is set and has
/// opened.
///
/// Each participant counts once, by an id of its own, so that a step repeated after a crash or a
/// lost reply does not count twice. A participant that dies before it counted is missed for ever;
/// bound the wait.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> lockkit_core::Result<()> {
/// use lockkit_core::{Locker, Memory};
///
/// let locker = Locker::new(Memory::new())?;
/// let ready = locker.latch("shards-ready");
/// assert!(ready.try_set(2).await?);
/// assert!(!ready.try_set(3).await?, "somebody is counting");
///
/// ready.count_down("shard-0").await?;
/// ready.count_down("shard-0").await?; // again: does not count
/// assert_eq!(ready.count().await?, Some(1));
/// ready.count_down("shard-1").await?;
/// ready.wait().await?; // open: returns at once
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a latch does nothing until it is used"]
pub struct Latch {
    terms: Terms,
}

debug_terms!(Latch);

impl Latch {
    pub(crate) fn new(core: &Arc<Core>, name: impl AsRef<str>) -> Self {
        Self {
            terms: Terms::new(core, Primitive::Latch, name, Order::Fair),
        }
    }

    choices!(ttl);
    choices!(resource);
    choices!(label);

    /// Sets the count, if nobody is counting: `false`, and no change, while the latch is closed.
    ///
    /// An open latch is closed again, and every participant counts anew. Whoever waited for it to
    /// open still returns, however late it looks.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidName`], [`ErrorKind::Unsupported`], or [`ErrorKind::InvalidArgument`] if
    /// `count` is 0, before any I/O; [`ErrorKind::Unavailable`] if the backend did not confirm, in
    /// which case it may have been set.
    ///
    /// # Cancel safety
    ///
    /// The latch may or may not have been set.
    pub async fn try_set(&self, count: u32) -> Result<bool> {
        if count == 0 {
            let message = "a latch of 0 would be open at once; use 1 or more, or `reset`";
            return Err(self.terms.core.error(ErrorKind::InvalidArgument, message));
        }
        self.set(count).await
    }

    /// Makes the latch as if it had never been set, if nobody is counting: `false`, and no change,
    /// while it is closed.
    ///
    /// # Errors
    ///
    /// As [`try_set`](Self::try_set).
    ///
    /// # Cancel safety
    ///
    /// The latch may or may not have been reset.
    pub async fn reset(&self) -> Result<bool> {
        self.set(0).await
    }

    async fn set(&self, count: u32) -> Result<bool> {
        let resource = self.terms.resource()?;
        let core = self.open_core()?;
        core.bounded(core.backend.set_latch(&resource, count)).await
    }

    /// Counts down for this participant, and tells how many are left. Once for each participant:
    /// another call with the same id changes nothing. At 0 everybody who waits goes on.
    ///
    /// The id is any text of 1 to 200 bytes, such as the name of a host or a job.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] if the latch is not set, or the id is no such text;
    /// [`ErrorKind::Unavailable`] if the backend did not confirm: call it again, with the same id.
    ///
    /// # Cancel safety
    ///
    /// It may or may not have counted; another call with the same id settles it.
    pub async fn count_down(&self, participant: impl AsRef<str> + Send) -> Result<u32> {
        let resource = self.terms.resource()?;
        let core = self.open_core()?;
        let participant = LockName::new(participant).map_err(|error| {
            let message = format!("the id of a participant is like a name: {error}");
            core.error(ErrorKind::InvalidArgument, message)
        })?;
        let counted = core.backend.count_down(&resource, &participant);
        match core.bounded(counted).await? {
            CountDown::Left(left) => Ok(left),
            CountDown::NotSet => {
                let message = "this latch is not set; set its count before anybody counts down";
                Err(core
                    .error(ErrorKind::InvalidArgument, message)
                    .with("name", resource.name()))
            }
        }
    }

    /// How many participants are still to come; `None` if the latch is not set.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unavailable`] if the backend does not answer.
    ///
    /// # Cancel safety
    ///
    /// Reads only.
    pub async fn count(&self) -> Result<Option<u32>> {
        Ok(self.state().await?.map(|state| state.left))
    }

    /// The count and what it was set to; `None` if the latch is not set.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unavailable`] if the backend does not answer.
    ///
    /// # Cancel safety
    ///
    /// Reads only.
    pub async fn state(&self) -> Result<Option<LatchState>> {
        let resource = self.terms.resource()?;
        let core = self.open_core()?;
        let snapshot: Snapshot = core.bounded(core.backend.inspect(&resource)).await?;
        Ok(snapshot.latch)
    }

    /// Waits until the latch is open, for as long as it takes; returns at once if it is.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidName`], [`ErrorKind::InvalidArgument`] or [`ErrorKind::Unsupported`]
    /// before any I/O; [`ErrorKind::Unavailable`] if the backend has not answered for a lease;
    /// [`ErrorKind::Closed`] once the locker is.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future at any point leaves nothing behind.
    pub async fn wait(&self) -> Result<()> {
        self.pass(Patience::Until(None)).await
    }

    /// Waits until the latch is open, but no longer than `limit`.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait); [`ErrorKind::Timeout`] if it has not opened in time.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future at any point leaves nothing behind.
    pub async fn wait_at_most(&self, limit: Duration) -> Result<()> {
        let terms = Terms {
            wait: Some(limit),
            ..self.terms.clone()
        };
        self.pass(terms.patience()).await
    }

    async fn pass(&self, patience: Patience) -> Result<()> {
        let request = self.terms.request(Mode::Shared, patience)?;
        if pass(&self.terms.core, &request).await? {
            return Ok(());
        }
        Err(not_open(&self.terms.core, &request.resource.name().clone()))
    }

    fn open_core(&self) -> Result<&Core> {
        self.terms.core.check_not_closed()?;
        Ok(&self.terms.core)
    }
}

/// The error of a wait that ran out.
pub(crate) fn not_open(core: &Core, name: &LockName) -> Error {
    core.error(ErrorKind::Timeout, "the latch did not open in time")
        .with("name", name)
}
