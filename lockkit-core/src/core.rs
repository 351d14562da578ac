//! What a locker, its locks and its guards share.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::observe::Observer;
use crate::owner::Owners;
use crate::watchdog::Watchdog;
use crate::within::within;
use crate::{Backend, Clock, Error, ErrorKind, Label, LockerOptions, Notices, Result, TimeLimit};

#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) clock: Clock,
    pub(crate) options: LockerOptions,
    pub(crate) observer: Observer,
    /// The label of claims that do not bring their own.
    pub(crate) label: Label,
    pub(crate) watchdog: Arc<Watchdog>,
    pub(crate) owners: Owners,
    /// How long a call to the backend may take.
    call_limit: TimeLimit,
    /// Cancelled when the locker is closed.
    pub(crate) closed: CancellationToken,
    /// Claims and releases under way, in their callers' futures or handed over to the runtime.
    requests: TaskTracker,
    runtime: Handle,
    /// Ends the watchdog's task, which drains its releases first.
    stop: CancellationToken,
    task: Mutex<Option<JoinHandle<Result<()>>>>,
}

impl Core {
    pub(crate) fn new(backend: Arc<dyn Backend>, options: LockerOptions) -> Result<Arc<Self>> {
        let runtime = Handle::try_current().map_err(|_| {
            let message = "no tokio runtime here; connect inside #[tokio::main] or Runtime::enter";
            Error::new(ErrorKind::InvalidConfig, message).on(backend.descriptor().driver)
        })?;
        options.check(backend.descriptor())?;
        let label = Label::new(options.label.as_str())?;
        let observer = Observer::new(backend.descriptor().driver, options.names_in_metrics);
        let watchdog = Watchdog::new(Arc::clone(&backend), options.call_timeout, observer);
        backend.attach(Notices::new(Arc::downgrade(&watchdog)));
        let stop = CancellationToken::new();
        let task = runtime.spawn(Arc::clone(&watchdog).run(stop.clone()));
        Ok(Arc::new(Self {
            clock: backend.descriptor().clock,
            call_limit: TimeLimit::new(options.call_timeout),
            backend,
            options,
            observer,
            label,
            watchdog,
            owners: Owners::default(),
            closed: CancellationToken::new(),
            requests: TaskTracker::new(),
            runtime,
            stop,
            task: Mutex::new(Some(task)),
        }))
    }

    /// Lets a request that must not be cut short run to its end without its caller.
    pub(crate) fn hand_over(&self, rest: impl Future<Output = ()> + Send + 'static) {
        self.requests.spawn_on(rest, &self.runtime);
    }

    /// A claim or a release is under way in its caller's future: closing waits for it.
    pub(crate) fn under_way(&self) -> TaskTrackerToken {
        self.requests.token()
    }

    pub(crate) fn check_not_closed(&self) -> Result<()> {
        if self.closed.is_cancelled() {
            return Err(self.closed_error());
        }
        Ok(())
    }

    /// Whether so many more claims may start.
    pub(crate) fn check_open(&self, more: usize) -> Result<()> {
        self.check_not_closed()?;
        let (holds, places) = self.watchdog.load();
        let full = |what: &str, limit: usize, option: &str| {
            let message = format!("{limit} {what} in this locker; raise `{option}` or share less");
            Err(self.error(ErrorKind::Overloaded, message))
        };
        if holds.saturating_add(more) > self.options.max_holds {
            return full("locks are held", self.options.max_holds, "max_holds");
        }
        if places >= self.options.max_waiters {
            return full("claims wait", self.options.max_waiters, "max_waiters");
        }
        Ok(())
    }

    /// Bounds a call whose driver may hang.
    pub(crate) async fn bounded<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        match self.call_limit.bound(call).await {
            Some(answer) => answer.map_err(|error| error.on(self.backend.descriptor().driver)),
            None => Err(self.no_answer(self.call_limit.get())),
        }
    }

    /// Bounds a call by `limit`, which is at most the time that any call may take.
    pub(crate) async fn within<T>(
        &self,
        limit: Duration,
        call: impl Future<Output = T>,
    ) -> Option<T> {
        if limit == self.call_limit.get() {
            return self.call_limit.bound(call).await;
        }
        within(limit, call).await
    }

    pub(crate) fn no_answer(&self, limit: Duration) -> Error {
        let message = "the backend did not answer in time; check that it is up and reachable";
        self.error(ErrorKind::Unavailable, message)
            .with("waited", format!("{limit:?}"))
    }

    pub(crate) fn error(&self, kind: ErrorKind, message: impl Into<String>) -> Error {
        Error::new(kind, message).on(self.backend.descriptor().driver)
    }

    pub(crate) fn closed_error(&self) -> Error {
        self.error(ErrorKind::Closed, "this locker was closed; connect again")
    }

    /// See [`Locker::close`](crate::Locker::close).
    pub(crate) async fn close(&self) -> Result<()> {
        self.closed.cancel();
        self.watchdog.close();
        // What is in the middle of a request is finished, and ends in the queue of releases.
        self.requests.close();
        let settle = async {
            self.requests.wait().await;
            self.watchdog.drained().await
        };
        let limit = self.options.call_timeout;
        let settled = tokio::time::timeout(limit, settle).await;
        self.stop.cancel();
        let task = self
            .task
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let ended = match task {
            Some(task) => {
                let ended = async { task.await.unwrap_or_else(|_| Err(self.orphaned())) };
                self.bounded(ended).await
            }
            None => Ok(()),
        };
        match settled {
            Ok(0) => ended,
            Ok(given_up) => {
                let message = "some releases were given up; those leases run out by themselves";
                Err(self
                    .error(ErrorKind::Unavailable, message)
                    .with("count", given_up))
            }
            Err(_) => Err(self.no_answer(limit)),
        }
    }

    fn orphaned(&self) -> Error {
        let message = "the runtime in which this locker was made has ended, so what it held was \
                       not released; close before the runtime ends";
        self.error(ErrorKind::Unavailable, message)
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // The task goes on until the releases of dropped guards are out.
        self.stop.cancel();
    }
}
