//! A link, for who uses it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lockkit_core::{Error, ErrorKind, Result};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use super::ears::{Arrival, Ears};
use crate::descriptor::DRIVER;
use crate::transport::Locate;
use crate::transport::live::Live;

/// How a link behaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// How long a request may take, and a connection to be made.
    pub(crate) timeout: Duration,
    /// How often to look whether an idle server is still there.
    pub(crate) heartbeat: Duration,
}

impl Settings {
    pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(10);
    pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(1);
}

pub(super) enum State {
    Down(Option<Arc<Error>>),
    Up(Arc<Live>),
    Closed,
}

/// A connection to one server, wherever that is at the moment. Dropping it ends it.
pub(crate) struct Link(Arc<Shared>);

pub(super) struct Shared {
    /// Rings when another connection must be made, however good this one looks.
    pub(super) anew: Notify,
    pub(super) locate: Arc<dyn Locate>,
    pub(super) ears: Arc<dyn Ears>,
    pub(super) settings: Settings,
    pub(super) state: watch::Sender<State>,
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

impl Shared {
    pub(super) async fn closed(&self) {
        let mut state = self.state.subscribe();
        // The sender is in `self`, so it cannot be gone.
        let _ = state.wait_for(|state| matches!(state, State::Closed)).await;
    }

    /// Changes the state, unless it is closed; whether it did.
    pub(super) fn set(&self, new: State) -> bool {
        self.state.send_if_modified(|state| {
            let open = !matches!(state, State::Closed);
            if open {
                *state = new;
            }
            open
        })
    }
}

pub(crate) fn closed() -> Error {
    Error::new(ErrorKind::Closed, "this backend was closed").on(DRIVER)
}
