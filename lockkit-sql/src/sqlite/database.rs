//! The way to the connection: one request at a time, in the order in which they came.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use lockkit_core::{Error, ErrorKind, Result};
use tokio::sync::Mutex;

use super::connection::Connection;
use super::descriptor::DRIVER;
use super::error::{Fault, closed};
use super::shared::Shared;

/// A future that borrows the connection.
pub(super) type Work<'c, T> = Pin<Box<dyn Future<Output = Result<T, Fault>> + Send + 'c>>;

/// A way to the connection, which is closed when the last of these is dropped.
#[derive(Clone, Debug)]
pub(super) struct Database {
    connection: Arc<Mutex<Connection>>,
    shared: Arc<Shared>,
}

/// The same without keeping it open.
#[derive(Clone, Debug)]
pub(super) struct WeakDatabase {
    connection: Weak<Mutex<Connection>>,
    shared: Weak<Shared>,
}

impl Database {
    pub(super) fn new(shared: Arc<Shared>, connection: Connection) -> Self {
        Self {
            connection: Arc::new(Mutex::new(connection)),
            shared,
        }
    }

    /// Runs a job in a task of its own and waits for its answer, for a bounded time. A caller that
    /// is not polled for a while must not keep others from the connection, nor other processes
    /// from their turn.
    ///
    /// # Cancel safety
    ///
    /// The job is finished all the same, so it may use transactions.
    pub(super) async fn run<T, J>(&self, job: J) -> Result<T>
    where
        T: Send + 'static,
        J: for<'c> FnOnce(&'c mut Connection) -> Work<'c, T> + Send + 'static,
    {
        let connection = Arc::clone(&self.connection);
        let shared = Arc::clone(&self.shared);
        let running = tokio::spawn(async move {
            let mut connection = connection.lock_owned().await;
            let done = job(&mut connection).await;
            connection
                .settle(done)
                .map_err(|fault| fault.into_error(shared.files.database()))
        });
        // The task fails only if the runtime ends.
        self.in_time(async { running.await.unwrap_or_else(|_| Err(closed())) })
            .await
    }

    async fn in_time<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        // Once for our turn among the writers, once for the writers that queue up nowhere.
        let patience: Duration = self.shared.options.busy_timeout * 2;
        let answered = tokio::time::timeout(patience, work).await;
        answered.unwrap_or_else(|_| Err(late(self.shared.files.database())))
    }

    pub(super) fn downgrade(&self) -> WeakDatabase {
        WeakDatabase {
            connection: Arc::downgrade(&self.connection),
            shared: Arc::downgrade(&self.shared),
        }
    }
}

impl WeakDatabase {
    pub(super) fn upgrade(&self) -> Option<Database> {
        Some(Database {
            connection: self.connection.upgrade()?,
            shared: self.shared.upgrade()?,
        })
    }
}

fn late(path: &Path) -> Error {
    Error::new(
        ErrorKind::Unavailable,
        "the database did not answer in time; look for a process that is stopped inside a \
         transaction, or raise busy_timeout in the URL",
    )
    .on(DRIVER)
    .with("path", path.display())
}
