//! The connections to one server.

use std::sync::Arc;

use lockkit_core::Result;
use tokio::sync::OnceCell;

use super::link::NoEars;
use super::{Call, Ears, Failure, Link, Live, Locate, Reply, Settings};

/// On which connection a request travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// With everything that callers wait for, and with the messages.
    Work,
    /// With the renewals only, so that a flood of other requests cannot delay them.
    Renewals,
}

/// One server.
#[derive(Debug)]
pub(crate) struct Node {
    locate: Arc<dyn Locate>,
    settings: Settings,
    work: Link,
    /// Made when the first renewal is due; a command that holds a lock for a second has none.
    renewals: OnceCell<Link>,
}

impl Node {
    pub(crate) async fn open(
        locate: Arc<dyn Locate>,
        ears: Arc<dyn Ears>,
        settings: Settings,
    ) -> Result<Self> {
        Ok(Self {
            work: Link::open(Arc::clone(&locate), ears, settings).await?,
            renewals: OnceCell::new(),
            locate,
            settings,
        })
    }

    /// The connection of a lane.
    pub(crate) async fn live(&self, lane: Lane) -> Result<Arc<Live>> {
        if lane == Lane::Work || self.work.is_closed() {
            return self.work.live().await;
        }
        let open = || Link::open(Arc::clone(&self.locate), Arc::new(NoEars), self.settings);
        let Ok(link) = self.renewals.get_or_try_init(open).await else {
            // One lane is better than none.
            return self.work.live().await;
        };
        if self.work.is_closed() {
            link.close();
        }
        let live = link.live().await?;
        match self.work.if_up() {
            // An old master that knows nothing of a failover would confirm what nobody else
            // believes in any more.
            Some(work) if work.server.differs_from(&live.server) => {
                link.connect_anew();
                Ok(work)
            }
            _ => Ok(live),
        }
    }

    /// The connection for requests, if it is up at this moment.
    pub(crate) fn if_up(&self) -> Option<Arc<Live>> {
        self.work.if_up()
    }

    /// Runs a script.
    pub(crate) async fn eval(
        &self,
        lane: Lane,
        call: &Call<'_>,
        asking: bool,
    ) -> Result<Result<Reply, Failure>> {
        Ok(self.live(lane).await?.eval(call, asking).await)
    }

    pub(crate) fn close(&self) {
        self.work.close();
        if let Some(link) = self.renewals.get() {
            link.close();
        }
        self.locate.close();
    }
}
