//! One connection, kept alive for ever.
//!
//! The client library's own reconnecting connection gives up when idle, never notices a half-open
//! connection, and stays on a demoted master. So this one asks whenever something was not answered
//! in time, and now and then when nothing was asked at all; and it connects anew, wherever the
//! server is by then, until it is closed.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lockkit_core::{Error, ErrorKind, Result};
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use super::live::Live;
use super::{Address, Failure, Locate, Push, Request, Server, driver};
use crate::descriptor::DRIVER;
use crate::error::translated;

/// How a link behaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// How long a request may take, and a connection to be made.
    pub(crate) timeout: Duration,
    /// How often to look whether an idle server is still there.
    pub(crate) heartbeat: Duration,
}

impl Settings {
    const FIRST_PAUSE: Duration = Duration::from_millis(10);
    const LONGEST_PAUSE: Duration = Duration::from_secs(1);
}

/// How a connection compares with the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// There was none before.
    First,
    /// To the same master: what it knew it still knows.
    Again,
    /// To another one, or to one that was none in between, which may know less.
    Elsewhere,
}

/// Who listens on a link.
pub(crate) trait Ears: fmt::Debug + Send + Sync {
    /// The channels to hear, asked for on each new connection before it is used.
    fn channels(&self) -> Vec<String>;

    /// Whether they are channels of a slot, as in `SSUBSCRIBE`.
    fn are_sharded(&self) -> bool {
        false
    }

    /// A message came, from a server with this [`reign`](Server::reign). Must not block.
    fn heard(&self, message: &[u8], reign: &str);

    /// Messages may have been lost: there was a gap in hearing.
    fn missed(&self);

    /// The link is down.
    fn lost(&self) {}

    /// The link is up.
    fn connected(&self, arrival: Arrival);

    /// The server does not let this client listen.
    fn deaf(&self, failure: &Failure);
}

/// Nobody listens.
#[derive(Debug)]
pub(crate) struct NoEars;

impl Ears for NoEars {
    fn channels(&self) -> Vec<String> {
        Vec::new()
    }
    fn heard(&self, _: &[u8], _: &str) {}
    fn missed(&self) {}
    fn connected(&self, _: Arrival) {}
    fn deaf(&self, _: &Failure) {}
}

/// A reason to look whether the connection is still good.
#[derive(Debug, Default)]
pub(super) struct Doubt {
    ring: Notify,
    /// It is no good: do not even ask.
    sure: AtomicBool,
}

impl Doubt {
    pub(super) fn about(&self, failure: &Failure) {
        match failure {
            Failure::Silent(_) => {}
            Failure::Broken(_) => self.sure.store(true, Ordering::Release),
            // A master that was demoted, or a server that is not ready.
            Failure::Refused { code, .. } => match code.as_str() {
                "READONLY" | "MASTERDOWN" | "LOADING" | "NOAUTH" => {
                    self.sure.store(true, Ordering::Release);
                }
                _ => return,
            },
        }
        self.ring.notify_one();
    }
}

enum State {
    Down(Option<Arc<Error>>),
    Up(Arc<Live>),
    Closed,
}

/// A connection to one server, wherever that is at the moment. Dropping it ends it.
pub(crate) struct Link(Arc<Shared>);

struct Shared {
    /// Rings when another connection must be made, however good this one looks.
    anew: Notify,
    locate: Arc<dyn Locate>,
    ears: Arc<dyn Ears>,
    settings: Settings,
    state: watch::Sender<State>,
}

impl Link {
    /// Connects, and stays connected. The first attempt must succeed.
    pub(crate) async fn open(
        locate: Arc<dyn Locate>,
        ears: Arc<dyn Ears>,
        settings: Settings,
    ) -> Result<Self> {
        let link = Self::new(locate, ears, settings);
        let first = link.0.connect(None).await?;
        link.0.ears.connected(Arrival::First);
        link.0
            .state
            .send_replace(State::Up(Arc::clone(&first.live)));
        tokio::spawn(Arc::clone(&link.0).supervise(first));
        Ok(link)
    }

    /// Connects as soon as the server is there, however long that takes, and stays connected.
    pub(crate) fn start(locate: Arc<dyn Locate>, ears: Arc<dyn Ears>, settings: Settings) -> Self {
        let link = Self::new(locate, ears, settings);
        let shared = Arc::clone(&link.0);
        tokio::spawn(async move {
            let first = tokio::select! {
                () = shared.closed() => return,
                first = shared.connect_again(None) => first,
            };
            if shared.set(State::Up(Arc::clone(&first.live))) {
                shared.ears.connected(Arrival::First);
                shared.supervise(first).await;
            }
        });
        link
    }

    fn new(locate: Arc<dyn Locate>, ears: Arc<dyn Ears>, settings: Settings) -> Self {
        Self(Arc::new(Shared {
            anew: Notify::new(),
            locate,
            ears,
            settings,
            state: watch::Sender::new(State::Down(None)),
        }))
    }

    /// Waits until the first connection is made, or could not be.
    pub(crate) async fn settled(&self) {
        let mut state = self.0.state.subscribe();
        // The sender is in `self`, so it cannot be gone.
        let _ = state
            .wait_for(|state| !matches!(state, State::Down(None)))
            .await;
    }

    /// Why there is no connection, if one was tried.
    pub(crate) fn refusal(&self) -> Option<Arc<Error>> {
        match &*self.0.state.borrow() {
            State::Down(why) => why.clone(),
            State::Up(_) | State::Closed => None,
        }
    }

    /// The connection; waits a little for one that is being made.
    pub(crate) async fn live(&self) -> Result<Arc<Live>> {
        if let State::Up(live) = &*self.0.state.borrow() {
            return Ok(Arc::clone(live));
        }
        let mut state = self.0.state.subscribe();
        let settled = state.wait_for(|state| !matches!(state, State::Down(_)));
        // However it ended, the state says it.
        let _ = timeout(self.0.settings.timeout, settled).await;
        match &*self.0.state.borrow() {
            State::Up(live) => Ok(Arc::clone(live)),
            State::Closed => Err(closed()),
            State::Down(why) => {
                let mut error = Error::new(
                    ErrorKind::Unavailable,
                    "there is no connection to the server, and none could be made so far",
                )
                .on(DRIVER)
                .with("server", self.0.locate.address());
                if let Some(why) = why {
                    error = error.with("last", why.message());
                }
                Err(error)
            }
        }
    }

    /// The connection, if it is up at this moment.
    pub(crate) fn if_up(&self) -> Option<Arc<Live>> {
        match &*self.0.state.borrow() {
            State::Up(live) => Some(Arc::clone(live)),
            State::Down(_) | State::Closed => None,
        }
    }

    /// Connects anew, wherever the server is now.
    pub(crate) fn connect_anew(&self) {
        self.0.anew.notify_one();
    }

    /// Whether it was closed.
    pub(crate) fn is_closed(&self) -> bool {
        matches!(&*self.0.state.borrow(), State::Closed)
    }

    /// Ends the link.
    pub(crate) fn close(&self) {
        self.0.state.send_replace(State::Closed);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("server", &self.0.locate.address())
            .finish_non_exhaustive()
    }
}

/// A connection, and what tells about it.
struct Connection {
    live: Arc<Live>,
    address: Address,
    doubt: Arc<Doubt>,
    moves: Option<watch::Receiver<u64>>,
}

impl Shared {
    /// Makes one connection and sees that it is fit for use. `old` is the one that it replaces.
    async fn connect(&self, old: Option<&Server>) -> Result<Connection> {
        let limit = self.settings.timeout;
        // First the ear, then the question: what changes in between is heard.
        let moves = self.locate.moves();
        let endpoint = self.locate.locate().await?;
        let doubt = Arc::new(Doubt::default());
        let reign = Arc::new(OnceLock::<String>::new());
        let ear = {
            let (ears, doubt) = (Arc::clone(&self.ears), Arc::clone(&doubt));
            let reign = Arc::clone(&reign);
            Arc::new(move |push| match push {
                Push::Message(message) => {
                    ears.heard(&message, reign.get().map_or("", String::as_str));
                }
                Push::Unsubscribed => ears.missed(),
                Push::Disconnected => doubt.about(&Failure::Broken(String::new())),
            })
        };
        let made = timeout(limit, async {
            let transport = driver::connect(&endpoint, limit, ear)
                .await
                .map_err(translated)?;
            let server = Server::ask(&*transport).await?.at(&endpoint);
            Ok((transport, server))
        });
        let context = |error: Error| error.with("server", &endpoint);
        let (transport, server) = made
            .await
            .unwrap_or_else(|_| Err(too_slow()))
            .map_err(context)?;
        self.locate.check(&server).map_err(context)?;
        reign.get_or_init(|| server.reign.clone());
        let live = Arc::new(Live::new(transport, server, limit, Arc::clone(&doubt)));
        if let Some(old) = old {
            // What was sent on the old connection and not read yet must not take effect after
            // what is sent on the new one. A server that does not allow this leaves such a
            // request a small chance, which costs one lease.
            let kill = Request::new("CLIENT KILL ID").arg(old.connection.to_string());
            let same = old.run_id == live.server.run_id;
            if same && let Err(Failure::Broken(_) | Failure::Silent(_)) = live.send(&kill).await {
                return Err(context(too_slow()));
            }
        }
        for channel in self.ears.channels() {
            match live.subscribe(&channel, self.ears.are_sharded()).await {
                Ok(()) => {}
                Err(failure @ Failure::Refused { .. }) => self.ears.deaf(&failure),
                Err(failure) => return Err(context(translated(failure))),
            }
        }
        Ok(Connection {
            live,
            address: endpoint.address,
            doubt,
            moves,
        })
    }

    /// Watches over a connection, and makes another one when it has to.
    async fn supervise(self: Arc<Self>, mut current: Connection) {
        loop {
            tokio::select! {
                () = self.closed() => return,
                () = self.goes_bad(&mut current) => {}
            }
            if !self.set(State::Down(None)) {
                return;
            }
            self.ears.lost();
            let old = current.live.server.clone();
            drop(current);
            current = tokio::select! {
                () = self.closed() => return,
                again = self.connect_again(Some(&old)) => again,
            };
            let arrival = if old.reign == current.live.server.reign {
                Arrival::Again
            } else {
                Arrival::Elsewhere
            };
            if !self.set(State::Up(Arc::clone(&current.live))) {
                return;
            }
            self.ears.connected(arrival);
        }
    }

    /// Connects for as long as it takes.
    async fn connect_again(&self, old: Option<&Server>) -> Connection {
        let mut pause = Settings::FIRST_PAUSE;
        loop {
            match self.connect(old).await {
                Ok(connection) => return connection,
                Err(error) => self.set(State::Down(Some(Arc::new(error)))),
            };
            sleep(pause.mul_f64(rand::random_range(0.5..1.0))).await;
            pause = (pause * 2).min(Settings::LONGEST_PAUSE);
        }
    }

    /// Returns when the connection is no good any more.
    async fn goes_bad(&self, connection: &mut Connection) {
        loop {
            // An idle connection is asked now and then; one in doubt at once.
            tokio::select! {
                () = connection.doubt.ring.notified() => {}
                () = sleep(self.settings.heartbeat) => {}
                () = self.anew.notified() => return,
                () = changed(&mut connection.moves) => {
                    if self.has_moved(connection).await {
                        return;
                    }
                    continue;
                }
            }
            if connection.doubt.sure.load(Ordering::Acquire) {
                return;
            }
            if !connection.live.is_well().await {
                return;
            }
        }
    }

    /// Whether the server is elsewhere now. What was heard may be old news: then the connection is
    /// kept, for requests are on their way on it.
    async fn has_moved(&self, connection: &Connection) -> bool {
        match self.locate.locate().await {
            Ok(endpoint) if endpoint.address == connection.address => {
                !(connection.live.server.is_reign_told && connection.live.is_well().await)
            }
            _ => true,
        }
    }

    async fn closed(&self) {
        let mut state = self.state.subscribe();
        // The sender is in `self`, so it cannot be gone.
        let _ = state.wait_for(|state| matches!(state, State::Closed)).await;
    }

    /// Changes the state, unless it is closed; whether it did.
    fn set(&self, new: State) -> bool {
        self.state.send_if_modified(|state| {
            let open = !matches!(state, State::Closed);
            if open {
                *state = new;
            }
            open
        })
    }
}

async fn changed(moves: &mut Option<watch::Receiver<u64>>) {
    match moves {
        // The sender lives as long as the link.
        Some(moves) => drop(moves.changed().await),
        None => std::future::pending().await,
    }
}

fn too_slow() -> Error {
    Error::new(
        ErrorKind::Unavailable,
        "the server took the connection and did not answer in time",
    )
    .on(DRIVER)
}

pub(super) fn closed() -> Error {
    Error::new(ErrorKind::Closed, "this backend was closed").on(DRIVER)
}
