//! The way to the backend and back.

use std::time::Duration;

use lockkit::{Locker, LockerOptions};
use rustix::process::Signal;
use tokio::runtime::Builder;

use crate::args::Global;
use crate::exit::{self, Failure};
use crate::output::Output;
use crate::signals::{self, Signals};

/// Runs a command on this thread alone: nothing here is worth a pool of threads.
pub(crate) fn block_on(command: impl Future<Output = Result<u8, Failure>>) -> Result<u8, Failure> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(command);
    // Whatever had to be finished was waited for by `close`.
    runtime.shutdown_background();
    outcome
}

/// Where the locks are: `--url`, `LOCKKIT_URL`, or a file of this user.
///
/// # Errors
///
/// If there is nothing to go by. The URL is never part of an error: it may hold a password.
pub(crate) fn url(global: &Global) -> Result<String, Failure> {
    if let Some(url) = &global.url {
        return Ok(url.clone());
    }
    let config = |message| Failure::new(exit::CONFIG, "invalid configuration", message);
    match std::env::var_os("LOCKKIT_URL") {
        Some(url) if !url.is_empty() => url
            .into_string()
            .map_err(|_| config("LOCKKIT_URL is not UTF-8; escape it with %XX")),
        _ => default_url().map_err(config),
    }
}

fn default_url() -> Result<String, &'static str> {
    let state = dirs::state_dir().or_else(dirs::data_local_dir).ok_or(
        "there is no home directory to keep the locks in; give --url or set LOCKKIT_URL, \
         for example to sqlite:/var/lib/locks.db",
    )?;
    let path = state.join("lockkit/locks.db");
    let path = path
        .to_str()
        .ok_or("the path of your state directory is not UTF-8; give --url or set LOCKKIT_URL")?;
    Ok(format!(
        "sqlite:{}",
        path.replace('%', "%25").replace('?', "%3F")
    ))
}

/// Checks a lease time against the backend of this URL before anything is touched.
///
/// # Errors
///
/// If it is out of range. A URL of no known backend is left to [`connect`].
pub(crate) fn check_ttl(url: &str, ttl: Duration) -> Result<(), Failure> {
    let driver = url.split(':').next().unwrap_or_default();
    match lockkit::backends()
        .into_iter()
        .find(|backend| backend.driver == driver)
    {
        Some(backend) => Ok(backend.check_ttl(ttl)?),
        None => Ok(()),
    }
}

/// Connects to the backend of this URL, under this label.
pub(crate) async fn connect(url: &str, label: &str) -> Result<Locker, Failure> {
    let mut options = LockerOptions::default();
    label.clone_into(&mut options.label);
    Ok(lockkit::connect_with(url, options).await?)
}

/// Does `work` unless a signal comes first, which is then the failure: one that came `before` work
/// was done.
pub(crate) async fn unless_signalled<T>(
    signals: &mut Signals,
    before: &str,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    signals
        .unless(work)
        .await
        .unwrap_or_else(|signal| Err(ended_by(signal, before)))
}

fn ended_by(signal: Signal, before: &str) -> Failure {
    let message = format!("ended by {} {before}", signals::name(signal));
    Failure::new(exit::of_signal(signal), "signal", message)
}

/// Lets go of everything and waits until the backend has confirmed it; another signal cuts that
/// short.
pub(crate) async fn close(locker: &Locker, signals: &mut Signals, output: &Output) {
    match signals.unless(locker.close()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => output.warning(&format!("could not close cleanly: {error}")),
        Err(signal) => output.warning(&format!(
            "ended by {} before the backend confirmed the release; the lease frees what is left",
            signals::name(signal)
        )),
    }
}

/// Connects, does `work`, closes: for commands that hold nothing a signal could leave behind.
pub(crate) async fn with_locker(
    url: &str,
    output: &Output,
    work: impl AsyncFnOnce(&Locker) -> Result<u8, Failure>,
) -> Result<u8, Failure> {
    let locker = connect(url, "lockkit").await?;
    let outcome = work(&locker).await;
    if let Err(error) = locker.close().await {
        output.warning(&format!("could not close cleanly: {error}"));
    }
    outcome
}
