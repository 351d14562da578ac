//! Turns at writing, between the processes that share a database.
//!
//! SQLite allows one writer at a time, and a process that finds another one writing sleeps 1, 2,
//! 5, 10, … ms before it looks again: under load some sleep while others come and go. So writers
//! queue up at a file lock first, where the kernel wakes them.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use lockkit_core::{Error, ErrorKind, Result};
use tokio::sync::oneshot;

use super::descriptor::DRIVER;
use super::error::file_error;

/// Our end of the queue.
#[derive(Debug)]
pub(super) struct Writer {
    file: Arc<File>,
    path: PathBuf,
    patience: Duration,
    /// The thread that waits, made at the first collision.
    queue: Option<mpsc::Sender<oneshot::Sender<io::Result<Turn>>>>,
}

/// Our turn, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn(Arc<File>);

impl Drop for Turn {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

impl Writer {
    pub(super) fn open(path: PathBuf, patience: Duration) -> Result<Self> {
        let file = open(&path).map_err(|error| file_error("open the file", &path, error))?;
        Ok(Self {
            file: Arc::new(file),
            path,
            patience,
            queue: None,
        })
    }

    /// Waits for our turn.
    pub(super) async fn turn(&mut self) -> Result<Turn> {
        match self.file.try_lock() {
            Ok(()) => Ok(Turn(Arc::clone(&self.file))),
            Err(TryLockError::WouldBlock) => self.queue_up().await,
            Err(TryLockError::Error(error)) => Err(file_error("lock the file", &self.path, error)),
        }
    }

    async fn queue_up(&mut self) -> Result<Turn> {
        let (reply, turn) = oneshot::channel();
        let reply = match &self.queue {
            Some(queue) => queue.send(reply).err().map(|unsent| unsent.0),
            None => Some(reply),
        };
        if let Some(reply) = reply {
            let (queue, requests) = mpsc::channel();
            let path = self.path.clone();
            thread::Builder::new()
                .name("lockkit-sqlite-turn".into())
                .spawn(move || wait_for_turns(&path, &requests))
                .map_err(|error| file_error("start a thread to lock", &self.path, error))?;
            // The receiver lives as long as the thread, so this cannot fail.
            let _ = queue.send(reply);
            self.queue = Some(queue);
        }
        match tokio::time::timeout(self.patience, turn).await {
            Ok(Ok(turn)) => turn.map_err(|error| file_error("lock the file", &self.path, error)),
            // A turn that comes later is passed on by dropping it in the channel.
            Ok(Err(_)) | Err(_) => Err(Error::new(
                ErrorKind::Unavailable,
                "other processes kept writing, or one of them is stopped while it writes; try \
                 again, or end the stopped one",
            )
            .on(DRIVER)
            .with("path", self.path.display())),
        }
    }
}

/// Waits on descriptions of its own: a lock belongs to the open file description, and a turn that
/// comes too late must not look like one that is wanted.
fn wait_for_turns(path: &Path, requests: &mpsc::Receiver<oneshot::Sender<io::Result<Turn>>>) {
    for reply in requests {
        let turn = open(path).and_then(|file| {
            file.lock()?;
            Ok(Turn(Arc::new(file)))
        });
        let _ = reply.send(turn);
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_turn_that_comes_too_late_is_passed_on() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("writer");
        let mut one = Writer::open(path.clone(), Duration::from_secs(30)).unwrap();
        let mut two = Writer::open(path, Duration::from_millis(20)).unwrap();
        let turn = one.turn().await.unwrap();
        let refusal = two.turn().await.unwrap_err();
        assert_eq!(refusal.kind(), ErrorKind::Unavailable);
        drop(turn);
        // `two` gets the turn it no longer wants; `one` must get it back.
        drop(one.turn().await.unwrap());
        two.patience = Duration::from_secs(30);
        drop(two.turn().await.unwrap());
        drop(one.turn().await.unwrap());
    }
}
