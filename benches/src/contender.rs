//! A process that takes one lock and lets it go on command.

use std::fs::File;
use std::io::{Write, stdin, stdout};
use std::thread;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use tokio::sync::mpsc::unbounded_channel;

use crate::clock::nanos;
use crate::guard::unlock;
use crate::peer::Peer;

/// What is contended for.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Subject {
    /// A lockkit mutex; the address is a URL.
    Lockkit,
    /// The same in strict order of arrival.
    Fair,
    /// flock(2); the address is a file.
    Flock,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Target {
    pub(crate) subject: Subject,
    pub(crate) address: String,
    /// The name of the mutex.
    pub(crate) name: String,
}

/// The other end: a child process that contends.
#[derive(Debug)]
pub(crate) struct Contender(Peer);

impl Contender {
    /// Starts the process and waits until it is connected.
    pub(crate) fn start(target: &Target) -> Result<Self> {
        let subject = match target.subject {
            Subject::Lockkit => "lockkit",
            Subject::Fair => "fair",
            Subject::Flock => "flock",
        };
        let peer = Peer::start(["contender", subject, &target.address, &target.name])?;
        peer.hear()?;
        Ok(Self(peer))
    }

    /// Tells it to take the lock, and does not wait until it has.
    pub(crate) fn take(&mut self) -> Result<()> {
        self.0.tell("take")
    }

    /// Waits until it holds; when that was.
    pub(crate) fn held(&self) -> Result<u64> {
        Ok(self.0.hear()?.parse()?)
    }

    /// When it began to hold, if it holds.
    pub(crate) fn holds(&self) -> Result<Option<u64>> {
        Ok(self.0.heard().map(|line| line.parse()).transpose()?)
    }

    /// Tells it to let go; when it began to.
    pub(crate) fn release(&mut self) -> Result<u64> {
        self.0.tell("release")?;
        Ok(self.0.hear()?.parse()?)
    }

    /// Kills it; when that was.
    pub(crate) fn kill(&mut self) -> Result<u64> {
        let before = nanos();
        self.0.kill()?;
        Ok(before)
    }
}

/// The child process: says that it is ready, then obeys `take` and `release`.
pub(crate) fn part(target: &Target) -> Result<()> {
    match target.subject {
        Subject::Flock => flock(target),
        Subject::Lockkit | Subject::Fair => tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?
            .block_on(mutex(target)),
    }
}

async fn mutex(target: &Target) -> Result<()> {
    let locker = lockkit::connect(&target.address).await?;
    let mutex = match target.subject {
        Subject::Fair => locker.mutex(&target.name).fair(),
        Subject::Lockkit | Subject::Flock => locker.mutex(&target.name),
    };
    let (sender, mut orders) = unbounded_channel();
    // Reading blocks, and the runtime must go on renewing meanwhile.
    thread::spawn(move || {
        stdin()
            .lines()
            .map_while(Result::ok)
            .try_for_each(|o| sender.send(o))
    });
    say(0)?;
    let mut guard = None;
    while let Some(order) = orders.recv().await {
        match order.as_str() {
            "take" => {
                guard = Some(mutex.lock().await?);
                say(nanos())?;
            }
            "release" => {
                let before = nanos();
                unlock(guard.take().context("nothing to release")?).await?;
                say(before)?;
            }
            other => bail!("unknown order {other}"),
        }
    }
    Ok(locker.close().await?)
}

fn flock(target: &Target) -> Result<()> {
    let file = File::open(&target.address)?;
    say(0)?;
    for order in stdin().lines() {
        match order?.as_str() {
            "take" => {
                file.lock()?;
                say(nanos())?;
            }
            "release" => {
                let before = nanos();
                file.unlock()?;
                say(before)?;
            }
            other => bail!("unknown order {other}"),
        }
    }
    Ok(())
}

fn say(nanos: u64) -> Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{nanos}")?;
    Ok(out.flush()?)
}
