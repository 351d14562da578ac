//! Where clients come in, or find nobody.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::relay::Line;

/// How many clients may wait to be let in.
const BACKLOG: u32 = 1024;

/// How long to wait for a port that is somebody else's, and between two tries.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(10);

/// A port, open or not.
#[derive(Debug)]
pub(super) enum Door {
    /// The task that lets clients in has the listener.
    Open(JoinHandle<()>),
    /// A bound socket that does not listen refuses connections, and keeps others from the port.
    /// None if the port could not be kept.
    Closed(Option<TcpSocket>),
}

impl Door {
    /// At any port.
    pub(super) async fn open_anywhere(line: &Arc<Line>) -> io::Result<(Self, SocketAddr)> {
        let socket = bound(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let address = socket.local_addr()?;
        let mut door = Self::Closed(Some(socket));
        door.open(address, line).await?;
        Ok((door, address))
    }

    pub(super) async fn open(&mut self, address: SocketAddr, line: &Arc<Line>) -> io::Result<()> {
        let Self::Closed(socket) = self else {
            return Ok(());
        };
        let listen = || {
            let socket = socket.take().map_or_else(|| bound(address), Ok)?;
            socket.listen(BACKLOG)
        };
        let listener = unless_in_use(listen).await?;
        *self = Self::Open(tokio::spawn(welcome(listener, Arc::clone(line))));
        Ok(())
    }

    pub(super) async fn close(&mut self, address: SocketAddr) -> io::Result<()> {
        if let Self::Open(task) = self {
            task.abort();
            // It is over when this returns, and the listener gone; how it ended is known.
            let _ = task.await;
            *self = Self::Closed(None);
        }
        if let Self::Closed(socket @ None) = self {
            *socket = Some(unless_in_use(|| bound(address)).await?);
        }
        Ok(())
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        if let Self::Open(task) = self {
            task.abort();
        }
    }
}

/// Tries again while the port is somebody else's: while nobody listens there, the system may give it
/// to a connection of another process for a moment.
async fn unless_in_use<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let end = Instant::now() + PATIENCE;
    loop {
        match attempt() {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && Instant::now() < end => {
                sleep(PAUSE).await;
            }
            outcome => return outcome,
        }
    }
}

fn bound(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    // Connections of the past do not keep the port.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

async fn welcome(listener: TcpListener, line: Arc<Line>) {
    loop {
        // A client that has gone before it was let in is an error here, and of no interest.
        if let Ok((client, _)) = listener.accept().await {
            line.connect(client);
        }
    }
}
