//! The backend, seen from core.

use std::fmt;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use lockkit_core::{
    Backend, Claim, Converted, CountDown, Descriptor, Error, ErrorKind, HoldId, LockName, Mode,
    Notices, Released, Renewal, Resource, Result, Snapshot, Ticket,
};

use super::change::{Change, Changes};
use super::descriptor::{DESCRIPTOR, DRIVER};
use super::inspect;
use super::ticket::SimpleTicket;
use super::waiting::Waiting;
use crate::config::{Config, Strategy};
use crate::connect::open;
use crate::mode::check;
use crate::renew::Lease;
use crate::shared::{Shared, milliseconds};
use crate::transport::Lane;

/// Mutexes on a Redis server as plain keys: `strategy=simple`.
///
/// For servers without pub/sub, or where this user may run no scripts. It excludes, and is excluded
/// by, the mutexes of [`Redis`](crate::Redis) under the same prefix. What it does without:
///
/// * Who waits looks again every 30 to 150 ms, and whoever looks first gets in. While mutexes of both
///   kinds wait for one name, those of `Redis` may wait for a third of their own lease longer, for they
///   are not told of a release.
/// * There are no fences: every token is 0.
/// * Whose hold an operator evicts learns of it by its next renewal; so does whom `Redis` asks to let go.
///   This backend asks nobody.
///
/// Its user needs `GET`, `SET`, `DEL`, `PEXPIRE` and `PTTL`, and either `EVALSHA` and `SCRIPT LOAD`
/// or `WATCH`, `UNWATCH`, `MULTI` and `EXEC`; and `SCAN` to list.
pub struct Simple {
    state: Arc<State>,
    closed: AtomicBool,
}

/// What tickets and calls share.
#[derive(Debug)]
pub(super) struct State {
    pub(super) shared: Shared,
    pub(super) waiting: Waiting,
    changes: Changes,
}

impl State {
    /// See [`Changes::make`].
    pub(super) async fn change(
        &self,
        lane: Lane,
        change: Change,
        ids: &[&HoldId],
    ) -> Result<Vec<Lease>> {
        self.changes.make(&self.shared, lane, change, ids).await
    }

    async fn release(&self, id: &HoldId) -> Result<Released> {
        let answers = self.change(Lane::Work, Change::Release, &[id]).await?;
        Ok(match answers[0].lease {
            0 => Released::NotHeld,
            _ => Released::Done,
        })
    }
}

impl Simple {
    /// Connects to the servers of a URL, whether or not it says `strategy=simple`.
    ///
    /// # Errors
    ///
    /// As [`Redis::connect`](crate::Redis::connect); [`ErrorKind::InvalidConfig`] for `replicas`,
    /// which needs the other strategy.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes what was opened.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn doc() -> lockkit_core::Result<()> {
    /// use lockkit_redis::Simple;
    ///
    /// let backend = Simple::connect("redis://127.0.0.1:6379?strategy=simple").await?;
    /// # Ok(()) }
    /// ```
    pub async fn connect(url: &str) -> Result<Self> {
        let mut config = Config::parse(url)?;
        config.options.strategy = Strategy::Simple;
        let invalid = |message| Error::new(ErrorKind::InvalidConfig, message).on(DRIVER);
        if config.options.replicas > 0 {
            return Err(invalid(
                "`replicas` needs `strategy=direct`; leave one of the two away",
            ));
        }
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(invalid("there is no tokio runtime; call this inside one"));
        }
        // Boxed, because what it takes would make every caller's future large.
        let (shared, _) = Box::pin(open(config)).await?;
        let state = State {
            shared,
            waiting: Waiting::default(),
            changes: Changes::new(),
        };
        Ok(Self {
            state: Arc::new(state),
            closed: AtomicBool::new(false),
        })
    }

    /// What this backend promises.
    #[must_use]
    pub fn descriptor() -> &'static Descriptor {
        &DESCRIPTOR
    }
}

impl fmt::Debug for Simple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simple").finish_non_exhaustive()
    }
}

fn unsupported<T>(what: &str) -> Result<T> {
    let message = format!("`strategy=simple` has no {what}; use `strategy=direct`");
    Err(Error::new(ErrorKind::Unsupported, message).on(DRIVER))
}

#[async_trait]
impl Backend for Simple {
    fn descriptor(&self) -> &Descriptor {
        &DESCRIPTOR
    }

    fn attach(&self, notices: Notices) {
        self.state.shared.inbox.attach(notices);
    }

    fn enter(&self, claim: Claim) -> Result<Box<dyn Ticket>> {
        if self.closed.load(Ordering::Acquire) {
            let message = "this backend was closed; connect again";
            return Err(Error::new(ErrorKind::Closed, message).on(DRIVER));
        }
        DESCRIPTOR.require(claim.resource.primitive())?;
        check(&claim)?;
        DESCRIPTOR.check_ttl(claim.ttl)?;
        let state = Arc::clone(&self.state);
        Ok(Box::new(SimpleTicket::new(state, claim)))
    }

    async fn renew(&self, ids: &[HoldId]) -> Vec<Renewal> {
        self.state.renew(ids).await
    }

    async fn release(&self, ids: &[HoldId]) -> Vec<Result<Released>> {
        join_all(ids.iter().map(|id| self.state.release(id))).await
    }

    async fn extend(&self, id: &HoldId, ttl: Duration) -> Renewal {
        self.state.extend(id, milliseconds(ttl)).await
    }

    async fn inspect(&self, resource: &Resource) -> Result<Snapshot> {
        DESCRIPTOR.require(resource.primitive())?;
        inspect::inspect(&self.state.shared, resource).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Snapshot>> {
        inspect::list(&self.state.shared, prefix).await
    }

    /// There is nobody to tell: the holder learns of it by its next renewal.
    async fn evict(&self, id: &HoldId) -> Result<Released> {
        self.state.release(id).await
    }

    fn session_file(&self, _: &HoldId) -> Option<File> {
        None
    }

    async fn convert(&self, _: &HoldId, _: Mode) -> Result<Converted> {
        unsupported("modes to change between")
    }

    async fn request_release(&self, _: &Resource) -> Result<usize> {
        unsupported("way to reach a holder, so none can be asked to let go")
    }

    async fn set_size(&self, _: &Resource, _: u32) -> Result<bool> {
        unsupported("locks with a size")
    }

    async fn set_latch(&self, _: &Resource, _: u32) -> Result<bool> {
        unsupported("latches")
    }

    async fn count_down(&self, _: &Resource, _: &LockName) -> Result<CountDown> {
        unsupported("latches")
    }

    async fn probe(&self) -> Result<Vec<(&'static str, String)>> {
        let mut facts = self.state.shared.probe().await?;
        let how = if self.state.changes.by_scripts() {
            "scripts"
        } else {
            "transactions"
        };
        // About all servers, so before what is about each.
        facts.insert(0, ("changes by", how.into()));
        Ok(facts)
    }

    async fn close(&self) -> Result<()> {
        if !self.closed.swap(true, Ordering::AcqRel) {
            self.state.shared.close().await;
        }
        Ok(())
    }
}
