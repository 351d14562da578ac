//! Bytes from one socket to the other.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::counters::{Counter, Traffic};
use super::flow::Flow;
use super::frames::Frames;

/// What all connections of a proxy share.
#[derive(Debug)]
pub(super) struct Line {
    server: SocketAddr,
    pub(super) requests: Way,
    pub(super) replies: Way,
    connections: Counter,
    generation: Mutex<Generation>,
}

/// One of the two directions.
#[derive(Debug, Default)]
pub(super) struct Way {
    pub(super) flow: watch::Sender<Flow>,
    passed: Counter,
}

/// The connections since the last reset.
#[derive(Clone, Debug, Default)]
struct Generation {
    reset: CancellationToken,
    tasks: TaskTracker,
}

impl Line {
    pub(super) fn to(server: SocketAddr) -> Self {
        Self {
            server,
            requests: Way::default(),
            replies: Way::default(),
            connections: Counter::default(),
            generation: Mutex::default(),
        }
    }

    /// Continues the connection of a client to the server.
    pub(super) fn connect(self: &Arc<Self>, client: TcpStream) {
        self.connections.add(1);
        let Generation { reset, tasks } = self.generation();
        tasks.spawn(Arc::clone(self).carry(client, reset));
    }

    /// Resets all connections, and returns when they are gone.
    pub(super) async fn reset(&self) {
        let generation = {
            let mut present = self
                .generation
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *present)
        };
        generation.reset.cancel();
        generation.tasks.close();
        generation.tasks.wait().await;
    }

    /// Resets all connections as soon as may be.
    pub(super) fn hang_up(&self) {
        self.generation().reset.cancel();
    }

    pub(super) fn traffic(&self) -> Traffic {
        Traffic {
            connections: self.connections.value(),
            open: self.generation().tasks.len() as u64,
            requests: self.requests.passed.value(),
            replies: self.replies.passed.value(),
        }
    }

    fn generation(&self) -> Generation {
        let present = self.generation.lock();
        present.unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn carry(self: Arc<Self>, mut client: TcpStream, reset: CancellationToken) {
        let reached = reset
            .run_until_cancelled(TcpStream::connect(self.server))
            .await;
        let Some(Ok(mut server)) = reached else {
            let _ = client.set_zero_linger();
            return;
        };
        let carried = reset.run_until_cancelled(self.exchange(&mut client, &mut server));
        if !matches!(carried.await, Some(Ok(()))) {
            // One end was reset, or both are to be. The other may be gone already.
            let _ = client.set_zero_linger();
            let _ = server.set_zero_linger();
        }
    }

    /// Until both directions have ended.
    async fn exchange(&self, client: &mut TcpStream, server: &mut TcpStream) -> io::Result<()> {
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        tokio::try_join!(
            self.requests.carry(from_client, to_server),
            self.replies.carry(from_server, to_client),
        )?;
        Ok(())
    }
}

impl Way {
    /// Passes on what is read, and then its end.
    async fn carry(&self, from: ReadHalf<'_>, to: WriteHalf<'_>) -> io::Result<()> {
        let (queue, queued) = mpsc::unbounded_channel();
        tokio::try_join!(self.read(from, queue), self.write(queued, to))?;
        Ok(())
    }

    async fn read(
        &self,
        mut from: ReadHalf<'_>,
        queue: mpsc::UnboundedSender<(Instant, Vec<u8>)>,
    ) -> io::Result<()> {
        let mut frames = Frames::default();
        let mut buffer = vec![0; 16 * 1024];
        loop {
            let count = from.read(&mut buffer).await?;
            // Looked at after the bytes have come: who sets a flow and then sends is served by it.
            let flow = self.moving().await;
            if count == 0 {
                return Ok(());
            }
            let kept = frames.filter(&buffer[..count], flow == Flow::SwallowPushes);
            let due = match flow {
                Flow::Swallow => continue,
                Flow::Delay(delay) => Instant::now() + delay,
                _ => Instant::now(),
            };
            // The other end of the queue lives as long as this.
            let _ = queue.send((due, kept));
        }
    }

    async fn write(
        &self,
        mut queued: mpsc::UnboundedReceiver<(Instant, Vec<u8>)>,
        mut to: WriteHalf<'_>,
    ) -> io::Result<()> {
        while let Some((due, bytes)) = queued.recv().await {
            if due > Instant::now() {
                sleep_until(due).await;
                self.moving().await;
            }
            to.write_all(&bytes).await?;
            self.passed.add(bytes.len());
        }
        to.shutdown().await
    }

    /// The flow, once it is not [`Flow::Stall`].
    async fn moving(&self) -> Flow {
        let mut flow = self.flow.subscribe();
        // The sender is `self`.
        flow.wait_for(|flow| *flow != Flow::Stall)
            .await
            .map_or_else(|_| Flow::Stall, |flow| *flow)
    }
}
