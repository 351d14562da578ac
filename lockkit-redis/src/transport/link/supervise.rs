//! How a connection is watched over, and replaced.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::watch;
use tokio::time::sleep;

use super::connection::Connection;
use super::ears::Arrival;
use super::handle::{Settings, Shared, State};
use crate::transport::Server;

impl Shared {
    /// Watches over a connection, and makes another one when it has to.
    pub(super) async fn supervise(self: Arc<Self>, mut current: Connection) {
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
    pub(super) async fn connect_again(&self, old: Option<&Server>) -> Connection {
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
}

async fn changed(moves: &mut Option<watch::Receiver<u64>>) {
    match moves {
        // The sender lives as long as the link.
        Some(moves) => drop(moves.changed().await),
        None => std::future::pending().await,
    }
}
