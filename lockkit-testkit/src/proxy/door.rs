//! Where clients come in, or find nobody.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinHandle;

use super::relay::Line;

/// How many clients may wait to be let in.
const BACKLOG: u32 = 1024;

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
    pub(super) fn open_anywhere(line: &Arc<Line>) -> io::Result<(Self, SocketAddr)> {
        let socket = bound(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let address = socket.local_addr()?;
        let mut door = Self::Closed(Some(socket));
        door.open(address, line)?;
        Ok((door, address))
    }

    pub(super) fn open(&mut self, address: SocketAddr, line: &Arc<Line>) -> io::Result<()> {
        let Self::Closed(socket) = self else {
            return Ok(());
        };
        let socket = socket.take().map_or_else(|| bound(address), Ok)?;
        let listener = socket.listen(BACKLOG)?;
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
            *socket = Some(bound(address)?);
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
