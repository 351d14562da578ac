//! A TCP connection on which bytes are late, lost, or stopped.

mod counters;
mod door;
mod flow;
mod frames;
mod relay;

#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::Mutex;

pub use counters::Traffic;
use door::Door;
pub use flow::Flow;
use relay::Line;

/// Stands between a client and a server, and can be told at any time to get in the way.
///
/// Clients connect to [`address`](Self::address); each connection is continued to the server.
/// What becomes of the bytes is said for each direction by a [`Flow`], for the connections that
/// there are and those to come. Dropping the proxy resets its connections.
///
/// ```
/// use lockkit_testkit::{Flow, Proxy};
/// use tokio::net::{TcpListener, TcpStream};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let server = TcpListener::bind("127.0.0.1:0").await?;
/// let proxy = Proxy::to(server.local_addr()?).await?;
/// let client = TcpStream::connect(proxy.address()).await?;
///
/// proxy.set_replies(Flow::Swallow); // requests arrive, replies do not
/// proxy.set(Flow::Stall); // nothing arrives, and nobody is told
/// proxy.cut().await?; // connections are reset, new ones refused
/// proxy.pass().await?; // all is well
/// # drop(client);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    line: Arc<Line>,
    door: Mutex<Door>,
}

impl Proxy {
    /// Listens on a free port of 127.0.0.1, for connections to `server`, such as
    /// `([127, 0, 0, 1], 6379)`, which need not be there yet. Must be called within a tokio runtime, on which the proxy then runs.
    ///
    /// # Errors
    ///
    /// If the system has no port to give.
    ///
    /// # Cancel safety
    ///
    /// Nothing is left if the future is dropped.
    pub async fn to(server: impl Into<SocketAddr>) -> io::Result<Self> {
        let line = Arc::new(Line::to(server.into()));
        let (door, address) = Door::open_anywhere(&line).await?;
        Ok(Self {
            address,
            line,
            door: Mutex::new(door),
        })
    }

    /// Where clients connect.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The port of [`address`](Self::address).
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// What becomes of the bytes in both directions from now on.
    pub fn set(&self, flow: Flow) {
        self.set_requests(flow);
        self.set_replies(flow);
    }

    /// What becomes of the bytes from clients to the server from now on.
    pub fn set_requests(&self, flow: Flow) {
        self.line.requests.flow.send_replace(flow);
    }

    /// What becomes of the bytes from the server to clients from now on.
    pub fn set_replies(&self, flow: Flow) {
        self.line.replies.flow.send_replace(flow);
    }

    /// Lets everything through from now on, bytes and connections.
    ///
    /// # Errors
    ///
    /// If the port that was given up by [`cut`](Self::cut) cannot be had again within seconds.
    ///
    /// # Cancel safety
    ///
    /// Can be repeated if the future is dropped.
    pub async fn pass(&self) -> io::Result<()> {
        self.set(Flow::Pass);
        let mut door = self.door.lock().await;
        door.open(self.address, &self.line).await
    }

    /// Resets all connections (RST) and refuses new ones until [`pass`](Self::pass), like a
    /// server that has ended. When this returns, it is done.
    ///
    /// # Errors
    ///
    /// If another process takes the port at this moment, and keeps it for seconds.
    ///
    /// # Cancel safety
    ///
    /// Can be repeated if the future is dropped.
    pub async fn cut(&self) -> io::Result<()> {
        self.door.lock().await.close(self.address).await?;
        self.cut_existing().await;
        Ok(())
    }

    /// Resets the connections that there are (RST). New ones are welcome. When this returns, it
    /// is done.
    ///
    /// # Cancel safety
    ///
    /// The connections are reset even if the future is dropped, at some time.
    pub async fn cut_existing(&self) {
        self.line.reset().await;
    }

    /// What has passed so far.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.line.traffic()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.line.hang_up();
    }
}
