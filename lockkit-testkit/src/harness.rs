//! What a backend supplies to be tested.

use std::fmt::Debug;
use std::io;
use std::path::PathBuf;

use async_trait::async_trait;
use lockkit_core::{Backend, Descriptor, Error, ErrorKind, Notices, Resource, Result};

/// The clock on which the cases of a backend run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Time {
    /// The real one, on a runtime of several threads.
    #[default]
    Real,
    /// Tokio's paused clock, on one thread: a lease of a minute costs nothing. Only for backends
    /// that live in this process, have [`Clock::Tokio`](lockkit_core::Clock::Tokio) and use no
    /// blocking threads.
    Virtual,
}

/// One lock service, empty, made for one case, and the ways to reach it.
///
/// The suite makes a harness for each case. Give each its own corner of the service (a file, a
/// schema, a key prefix) so that cases can run side by side and the census sees one case only.
/// Making one must do no I/O: it is also done to list the cases.
///
/// # Examples
///
/// A backend with everything in one process, which is the least there is to say:
///
/// ```
/// use async_trait::async_trait;
/// use lockkit_core::{Backend, Descriptor, Memory, MemoryStore, Result};
/// use lockkit_testkit::{Harness, Time, leftovers};
///
/// #[derive(Debug, Default)]
/// struct InMemory(MemoryStore);
///
/// #[async_trait]
/// impl Harness for InMemory {
///     fn descriptor(&self) -> &Descriptor {
///         Memory::descriptor()
///     }
///
///     async fn backend(&self) -> Result<Box<dyn Backend>> {
///         Ok(Box::new(self.0.backend()))
///     }
///
///     async fn census(&self) -> Result<Vec<String>> {
///         leftovers(&self.0.backend()).await
///     }
///
///     fn time(&self) -> Time {
///         Time::Virtual
///     }
/// }
///
/// // And in `tests/conformance.rs`, with `harness = false` in Cargo.toml:
/// fn main() -> std::process::ExitCode {
///     # if true { return std::process::ExitCode::SUCCESS }
///     lockkit_testkit::main(InMemory::default)
/// }
/// ```
#[async_trait]
pub trait Harness: Debug + Send + Sync + 'static {
    /// What the backend claims, and is therefore tested on.
    fn descriptor(&self) -> &Descriptor;

    /// Connects as another process would: nothing shared with earlier clients but the service.
    ///
    /// # Errors
    ///
    /// Whatever keeps it from connecting; the case fails. A service that is absent is a failure,
    /// never a reason to skip.
    async fn backend(&self) -> Result<Box<dyn Backend>>;

    /// Counts what is on the service that should not be there, one line for each: holds, places in
    /// line, sessions, files, connections. Called when every client of the case is closed, and
    /// again for a while until nothing is left.
    ///
    /// Look at the service by its own means: SQL, a key scan, a directory. [`leftovers`] asks the
    /// backend itself, which is good enough only where there is nothing behind it.
    async fn census(&self) -> Result<Vec<String>>;

    /// Makes the service forget whoever holds `resource`, as if a lease had run out early or a row
    /// had been deleted behind the backend's back.
    ///
    /// The default evicts by [`Backend::evict`]. Something rougher is the better test.
    async fn expire(&self, resource: &Resource) -> Result<()> {
        let backend = self.backend().await?;
        backend.attach(Notices::default());
        for holder in backend.inspect(resource).await?.holders {
            backend.evict(&holder.id).await?;
        }
        backend.close().await
    }

    /// How a child process reaches this very service; `None` for a backend that lives in one
    /// process, whose cases with child processes are then reported as ignored.
    fn url(&self) -> Option<String> {
        None
    }

    /// Connects to the service of another harness by its [`url`](Self::url). Called in child
    /// processes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] unless implemented, which goes with a `url`.
    async fn backend_at(&self, url: &str) -> Result<Box<dyn Backend>> {
        let message = format!("nothing connects to {url}; implement `backend_at` beside `url`");
        Err(Error::new(ErrorKind::Unsupported, message).on(self.descriptor().driver))
    }

    /// The program to run as a child process. It calls [`peer_main`](crate::peer_main).
    ///
    /// The default is this test binary itself, because [`main`](crate::main) knows when it is
    /// started as a child.
    ///
    /// # Errors
    ///
    /// If the path of this binary cannot be told.
    fn peer(&self) -> io::Result<PathBuf> {
        std::env::current_exe()
    }

    /// The clock on which its cases run.
    fn time(&self) -> Time {
        Time::Real
    }
}

/// The census of a backend that has nothing behind it: whoever holds or waits, by its own list.
///
/// # Errors
///
/// Those of [`Backend::list`].
pub async fn leftovers(backend: &dyn Backend) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for snapshot in backend.list("").await? {
        let holders = snapshot
            .holders
            .iter()
            .map(|h| format!("hold {:?} of {}", h.id, h.label));
        let waiters = snapshot
            .waiters
            .iter()
            .map(|w| format!("place {:?} of {}", w.id, w.label));
        lines.extend(holders.chain(waiters));
    }
    Ok(lines)
}
