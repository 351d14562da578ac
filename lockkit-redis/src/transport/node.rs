//! The connections to one server.

use std::sync::Arc;

use lockkit_core::{Error, ErrorKind, Result};
use tokio::sync::{Mutex, OnceCell};

use super::link::NoEars;
use super::{Ears, Errand, Failure, Link, Live, Locate, Reply, Settings};
use crate::descriptor::DRIVER;

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
    /// Made when the first transaction is due, and used by one at a time.
    transactions: OnceCell<Link>,
    one_at_a_time: Mutex<()>,
}

impl Node {
    pub(crate) async fn open(
        locate: Arc<dyn Locate>,
        ears: Arc<dyn Ears>,
        settings: Settings,
    ) -> Result<Self> {
        let work = Link::open(Arc::clone(&locate), ears, settings).await?;
        Ok(Self::on(work, locate, settings))
    }

    /// The same for a server that need not be there yet.
    pub(crate) fn start(locate: Arc<dyn Locate>, ears: Arc<dyn Ears>, settings: Settings) -> Self {
        let work = Link::start(Arc::clone(&locate), ears, settings);
        Self::on(work, locate, settings)
    }

    fn on(work: Link, locate: Arc<dyn Locate>, settings: Settings) -> Self {
        Self {
            locate,
            settings,
            work,
            renewals: OnceCell::new(),
            replicas: OnceCell::new(),
            transactions: OnceCell::new(),
            one_at_a_time: Mutex::new(()),
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
            _ if self.work.is_closed() => return self.work.live().await,
            Lane::Work => return self.work.live().await,
            Lane::Renewals => &self.renewals,
            Lane::Replicas => &self.replicas,
        };
        let link = match other.get_or_try_init(|| self.another()).await {
            Ok(link) => link,
            // One lane is better than none.
            Err(_) if lane == Lane::Renewals => return self.work.live().await,
            Err(error) => return Err(error),
        };
        match (self.of_one_mind(link).await?, lane) {
            (Ok(live), _) | (Err(live), Lane::Work | Lane::Renewals) => Ok(live),
            (Err(_), Lane::Replicas) => Err(torn()),
        }
    }

    /// The connection of another link than that for work; `Err` with the one for work if they are to
    /// different masters. An old master that knows nothing of a failover would confirm what nobody else
    /// believes in any more.
    async fn of_one_mind(&self, link: &Link) -> Result<Result<Arc<Live>, Arc<Live>>> {
        if self.work.is_closed() {
            link.close();
        }
        let live = link.live().await?;
        match self.work.if_up() {
            Some(work) if work.server.differs_from(&live.server) => {
                link.connect_anew();
                Ok(Err(work))
            }
            _ => Ok(Ok(live)),
        }
    }

    /// Runs an errand; a transaction on a connection of its own, when it is its turn.
    pub(crate) async fn run(
        &self,
        lane: Lane,
        errand: &Errand<'_>,
        asking: bool,
    ) -> Result<Result<Reply, Failure>> {
        // What is rare is boxed, so that the future of the common case is small.
        let live = match self.work.if_up() {
            Some(live) if lane == Lane::Work => live,
            _ => Box::pin(self.live(lane)).await?,
        };
        match errand {
            Errand::Script(call) => Ok(live.eval(call, asking).await),
            Errand::Command(..) => Ok(Box::pin(errand.run(&live, asking)).await),
            Errand::Transaction(_) => Box::pin(self.run_alone(errand, asking)).await,
        }
    }

    /// Runs a transaction, when it is its turn.
    async fn run_alone(&self, errand: &Errand<'_>, asking: bool) -> Result<Result<Reply, Failure>> {
        let _turn = self.one_at_a_time.lock().await;
        let link = self.transactions.get_or_try_init(|| self.another()).await?;
        let live = self.of_one_mind(link).await?.map_err(|_| torn())?;
        Ok(errand.run(&live, asking).await)
    }

    async fn another(&self) -> Result<Link> {
        Link::open(Arc::clone(&self.locate), Arc::new(NoEars), self.settings).await
    }

    pub(crate) fn close(&self) {
        self.work.close();
        for other in [&self.renewals, &self.replicas, &self.transactions] {
            if let Some(link) = other.get() {
                link.close();
            }
        }
        self.locate.close();
    }
}

fn torn() -> Error {
    let message = "another server is taking over at the moment";
    Error::new(ErrorKind::Unavailable, message).on(DRIVER)
}
