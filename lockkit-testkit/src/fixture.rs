//! What a case works with: clients of one service, and times that suit the backend.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lockkit_core::{
    AttemptId, Backend, Claim, Fence, Guard, Label, LockName, Locker, LockerOptions, Mode, Notices,
    Order, Primitive, Resource, Unlocked,
};
use tokio::time::{Instant, sleep};

use crate::failure::ensure;
use crate::{Client, Failure, Harness, History, Need, Outcome, Peer, Time, Wire};

/// The service of one case, and the clients made so far. All are closed when the case has ended,
/// and then nothing may be left on the service.
#[derive(Debug)]
pub struct Fixture {
    harness: Arc<dyn Harness>,
    clients: Mutex<Vec<Client>>,
    bare: Mutex<Vec<Arc<dyn Backend>>>,
    crashed: AtomicBool,
}

impl Fixture {
    /// A fixture on a fresh service.
    #[must_use]
    pub fn new(harness: Arc<dyn Harness>) -> Self {
        Self {
            harness,
            clients: Mutex::default(),
            bare: Mutex::default(),
            crashed: AtomicBool::new(false),
        }
    }

    /// The backend under test.
    #[must_use]
    pub fn harness(&self) -> &Arc<dyn Harness> {
        &self.harness
    }

    /// A fresh client, connected as another process would be.
    ///
    /// # Errors
    ///
    /// If it cannot connect.
    pub async fn client(&self) -> Outcome<Client> {
        let client = self.loose_client().await?;
        self.clients
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(client.clone());
        Ok(client)
    }

    /// A fresh client that the case closes, or abandons, by itself.
    ///
    /// # Errors
    ///
    /// If it cannot connect.
    pub async fn loose_client(&self) -> Outcome<Client> {
        let wire = Wire::new(Arc::from(self.harness.backend().await?));
        let mut options = LockerOptions::default();
        options.ttl = self.long();
        options.max_holds = 10_000;
        options.max_waiters = 10_000;
        let locker = Locker::with_options(wire.clone(), options)?;
        Ok(Client::new(locker, wire))
    }

    /// A fresh backend without a locker, for cases about the SPI.
    ///
    /// # Errors
    ///
    /// If it cannot connect.
    pub async fn backend(&self) -> Outcome<Arc<dyn Backend>> {
        let backend: Arc<dyn Backend> = Arc::from(self.harness.backend().await?);
        backend.attach(Notices::default());
        self.bare
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Arc::clone(&backend));
        Ok(backend)
    }

    /// A child process that is connected to the same service.
    ///
    /// # Errors
    ///
    /// If there is no url, the child does not start, or it does not connect.
    pub async fn peer(&self) -> Outcome<Peer> {
        let url = self
            .harness
            .url()
            .ok_or_else(|| Failure::new("the harness has no url"))?;
        Peer::spawn(&self.harness.peer()?, &url, self.soon()).await
    }

    /// A short lease that a case can wait out: a second, or the least that the backend grants.
    #[must_use]
    pub fn lease(&self) -> Duration {
        self.granted(Duration::from_secs(1))
    }

    /// A lease that outlives the case: half a minute, or the most that the backend grants.
    #[must_use]
    pub fn long(&self) -> Duration {
        self.granted(Duration::from_secs(30))
    }

    fn granted(&self, ttl: Duration) -> Duration {
        let range = &self.harness.descriptor().ttl;
        ttl.clamp(*range.start(), *range.end())
    }

    /// The bound for what must happen without waiting for any lease: generous in real time,
    /// because machines are busy, and far below [`long`](Self::long).
    #[must_use]
    pub fn soon(&self) -> Duration {
        Duration::from_secs(8)
    }

    /// `real` on the real clock, `precise` on the virtual one, where nothing takes time by itself.
    #[must_use]
    pub fn by_clock<T>(&self, precise: T, real: T) -> T {
        match self.harness.time() {
            Time::Virtual => precise,
            Time::Real => real,
        }
    }

    /// A history on the backend's clock.
    #[must_use]
    pub fn history(&self) -> History {
        let history = History::new(self.harness.descriptor().clock);
        if Need::Fences.met_by(&*self.harness) {
            history
        } else {
            history.without_fences()
        }
    }

    /// Whether a grant may carry this fence after one that carried `earlier`: it has to be greater,
    /// if the backend has fences at all.
    #[must_use]
    pub fn rises(&self, earlier: Fence, fence: Fence) -> bool {
        fence > earlier || !Need::Fences.met_by(&*self.harness)
    }

    /// A claim on a mutex as core would make it, for cases about the SPI.
    ///
    /// # Errors
    ///
    /// If `name` is not a lock name.
    pub fn claim(&self, name: &str, wait: bool) -> Outcome<Claim> {
        Ok(Claim {
            resource: mutex(name)?,
            mode: Mode::Exclusive,
            order: Order::Barging,
            ttl: self.long(),
            attempt: AttemptId::random(),
            label: Label::process(),
            wait,
        })
    }

    /// A claim that waits in fair order, on any resource, for cases about the SPI.
    #[must_use]
    pub fn claim_of(&self, resource: &Resource, mode: Mode) -> Claim {
        Claim {
            resource: resource.clone(),
            mode,
            order: Order::Fair,
            ttl: self.long(),
            attempt: AttemptId::random(),
            label: Label::process(),
            wait: true,
        }
    }

    /// Says that a client of this case has ended without closing. What it leaves need only be gone
    /// once another client has come and gone.
    pub fn crashed(&self) {
        self.crashed.store(true, Ordering::SeqCst);
    }

    /// Closes every client and takes the census.
    ///
    /// # Errors
    ///
    /// If a client does not close, or something is left on the service.
    pub async fn finish(&self) -> Outcome {
        let clients =
            std::mem::take(&mut *self.clients.lock().unwrap_or_else(PoisonError::into_inner));
        for client in clients {
            client.close().await?;
        }
        let bare = std::mem::take(&mut *self.bare.lock().unwrap_or_else(PoisonError::into_inner));
        for backend in bare {
            backend.close().await?;
        }
        let end = Instant::now() + self.lease() + self.soon();
        loop {
            if self.crashed.load(Ordering::SeqCst) {
                self.loose_client().await?.close().await?;
            }
            let left = self.harness.census().await?;
            if left.is_empty() {
                return Ok(());
            }
            ensure!(
                Instant::now() < end,
                "left on the service: {}",
                left.join("; ")
            );
            sleep(Duration::from_millis(20)).await;
        }
    }
}

/// The primitive of this name.
///
/// # Errors
///
/// If `name` is not a lock name.
pub(crate) fn resource(primitive: Primitive, name: &str) -> Outcome<Resource> {
    Ok(Resource::new(primitive, LockName::new(name)?))
}

/// The mutex of this name, as a resource.
///
/// # Errors
///
/// If `name` is not a lock name.
pub(crate) fn mutex(name: &str) -> Outcome<Resource> {
    resource(Primitive::Mutex, name)
}

/// Unlocks what must not have been lost.
///
/// # Errors
///
/// If it was.
#[track_caller]
pub(crate) fn unlock(guard: Guard) -> impl Future<Output = Outcome> + Send {
    let lost = Failure::new(format!("{:?} was lost", guard.name()));
    async move {
        match guard.unlock().await? {
            Unlocked::Clean => Ok(()),
            Unlocked::Lost(_) => Err(lost),
        }
    }
}
