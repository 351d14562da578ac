//! The connections to one server.

use std::sync::Arc;

use lockkit_core::{Error, Result};
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
    /// With what waits for replicas: the server answers nothing else on it meanwhile.
    Replicas,
}

/// One server.
#[derive(Debug)]
pub(crate) struct Node {
    locate: Arc<dyn Locate>,
    settings: Settings,
    work: Link,
    /// Made when the first renewal is due; a command that holds a lock for a second has none.
    renewals: OnceCell<Link>,
    /// Made when the first grant has to be on replicas.
    replicas: OnceCell<Link>,
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
            replicas: OnceCell::new(),
            locate,
            settings,
        })
    }

    /// The same for a server that need not be there yet.
    pub(crate) fn start(locate: Arc<dyn Locate>, ears: Arc<dyn Ears>, settings: Settings) -> Self {
        Self {
            work: Link::start(Arc::clone(&locate), ears, settings),
            renewals: OnceCell::new(),
            replicas: OnceCell::new(),
            locate,
            settings,
        }
    }

    /// Waits until the first connection is made, or could not be.
    pub(crate) async fn settled(&self) {
        self.work.settled().await;
    }

    /// Why there is no connection, if one was tried.
    pub(crate) fn refusal(&self) -> Option<Arc<Error>> {
        self.work.refusal()
    }

    /// The connection, if it is up at this moment.
    pub(crate) fn if_up(&self) -> Option<Arc<Live>> {
        self.work.if_up()
    }

    /// The connection of a lane.
    pub(crate) async fn live(&self, lane: Lane) -> Result<Arc<Live>> {
        let other = match lane {
            Lane::Work => return self.work.live().await,
            Lane::Renewals => &self.renewals,
            Lane::Replicas => &self.replicas,
        };
        let open = || Link::open(Arc::clone(&self.locate), Arc::new(NoEars), self.settings);
        match other.get_or_try_init(open).await {
            Ok(link) => link.live().await,
            // One lane is better than none.
            Err(_) if lane == Lane::Renewals => self.work.live().await,
            Err(error) => Err(error),
        }
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
        for other in [&self.renewals, &self.replicas] {
            if let Some(link) = other.get() {
                link.close();
            }
        }
    }
}
