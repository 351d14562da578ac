//! Child processes that lock, answer, are stopped and are killed.

mod orders;
mod serve;

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use lockkit_core::{Fence, LockName};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::failure::ensure;
use crate::{Failure, Outcome, Span};

pub use serve::peer_main;
pub(crate) use serve::serve;

/// The first argument of a child process; its second is the url.
pub(crate) const PEER_ARGUMENT: &str = "lockkit-testkit-peer";

/// A child process with a client of its own. Killed when dropped.
///
/// It does one thing after the other. Its guards stay until they are unlocked or it ends.
#[derive(Debug)]
pub struct Peer {
    child: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    patience: Duration,
}

impl Peer {
    /// Starts `program` as a child process and waits until it is connected to `url`. No answer of
    /// it may take longer than `patience` beyond what it was told to wait.
    ///
    /// # Errors
    ///
    /// If it does not start, or does not connect.
    pub async fn spawn(program: &Path, url: &str, patience: Duration) -> Outcome<Self> {
        let mut child = Command::new(program)
            .args([PEER_ARGUMENT, url])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (Some(orders), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Failure::new("a child without pipes"));
        };
        let answers = BufReader::new(answers).lines();
        let mut peer = Self {
            child,
            orders,
            answers,
            patience,
        };
        let ready = peer.answer(Duration::ZERO).await?;
        ensure!(ready == "ready", "the child did not connect: {ready}");
        Ok(peer)
    }

    /// Waits for the lock; `None` if `wait` ran out.
    ///
    /// # Errors
    ///
    /// Whatever went wrong in the child.
    pub async fn lock(
        &mut self,
        name: &str,
        ttl: Duration,
        wait: Duration,
    ) -> Outcome<Option<Fence>> {
        self.begin_lock(name, ttl, wait).await?;
        self.locked(wait).await
    }

    /// Waits for something else than a mutex, which is named as [`begin`](Self::begin) says;
    /// `None` if `wait` ran out.
    ///
    /// # Errors
    ///
    /// Whatever went wrong in the child.
    pub async fn take(
        &mut self,
        what: &str,
        name: &str,
        ttl: Duration,
        wait: Duration,
    ) -> Outcome<Option<Fence>> {
        self.begin(what, name, ttl, wait).await?;
        self.locked(wait).await
    }

    /// Tells it to wait for the lock, and returns while it does.
    ///
    /// # Errors
    ///
    /// If it has ended.
    pub async fn begin_lock(&mut self, name: &str, ttl: Duration, wait: Duration) -> Outcome {
        self.begin("lock", name, ttl, wait).await
    }

    /// The same for `lock`, `fair`, `read`, `write`, `permits:COUNT:LIMIT` or `any:SEGMENTS`: a
    /// mutex, one in strict order of coming, a half of a read-write lock, permits, a segment.
    ///
    /// # Errors
    ///
    /// If it has ended.
    pub async fn begin(
        &mut self,
        what: &str,
        name: &str,
        ttl: Duration,
        wait: Duration,
    ) -> Outcome {
        let (ttl, wait) = (ttl.as_millis(), wait.as_millis());
        self.tell(&format!("{what} {} {ttl} {wait}", encoded(name)?))
            .await
    }

    /// What became of a lock that was begun with this time to wait.
    ///
    /// # Errors
    ///
    /// Whatever went wrong in the child.
    pub async fn locked(&mut self, wait: Duration) -> Outcome<Option<Fence>> {
        match self.answer(wait).await?.as_str() {
            "busy" => Ok(None),
            fence => Ok(Some(Fence::new(fence.parse()?))),
        }
    }

    /// Locks `rounds` times and each time raises the number in `file` by one, reading and writing
    /// it in two steps. Tells the spans.
    ///
    /// # Errors
    ///
    /// Whatever went wrong in the child.
    pub async fn count(&mut self, name: &str, file: &Path, rounds: usize) -> Outcome<Vec<Span>> {
        let file = file
            .to_str()
            .ok_or_else(|| Failure::new("a file name that is no text"))?;
        self.tell(&format!("count {} {rounds} {file}", encoded(name)?))
            .await?;
        let answer = self.answer(Duration::from_secs(60)).await?;
        answer
            .split_whitespace()
            .map(|word| Span::decode(name, word))
            .collect()
    }

    /// Asks for one word: `try NAME TTL`, `unlock NAME`, `is_held NAME`, `asked NAME`, and for a
    /// latch `down NAME PARTICIPANT` and `pass NAME`, with the name
    /// [encoded](LockName::encoded) and times in milliseconds.
    ///
    /// # Errors
    ///
    /// Whatever went wrong in the child.
    pub async fn ask(&mut self, order: &str) -> Outcome<String> {
        self.tell(order).await?;
        self.answer(Duration::ZERO).await
    }

    /// Gives an order without waiting for the answer.
    ///
    /// # Errors
    ///
    /// If it has ended.
    pub async fn tell(&mut self, order: &str) -> Outcome {
        self.orders
            .write_all(format!("{order}\n").as_bytes())
            .await?;
        Ok(self.orders.flush().await?)
    }

    /// The next answer, which may take `wait` and some patience.
    ///
    /// # Errors
    ///
    /// Whatever went wrong in the child.
    pub async fn answer(&mut self, wait: Duration) -> Outcome<String> {
        let line = timeout(wait + self.patience, self.answers.next_line()).await??;
        let line = line.ok_or_else(|| Failure::new("the child has ended"))?;
        match line.strip_prefix("error ") {
            Some(error) => Err(Failure::new(format!("in the child: {error}"))),
            None => Ok(line),
        }
    }

    /// Kills it, as `kill -9` does, and waits until it is gone.
    ///
    /// # Errors
    ///
    /// If it has ended before.
    pub async fn kill(mut self) -> Outcome {
        Ok(self.child.kill().await?)
    }

    /// Lets it end without releasing anything.
    ///
    /// # Errors
    ///
    /// If it has ended before.
    pub async fn exit(mut self) -> Outcome {
        self.tell("exit").await?;
        timeout(self.patience, self.child.wait()).await??;
        Ok(())
    }

    /// Lets it close its client and end, and waits until it has.
    ///
    /// # Errors
    ///
    /// If closing fails in the child.
    pub async fn close(mut self) -> Outcome {
        let closed = self.ask("close").await?;
        ensure!(closed == "closed", "{closed}");
        timeout(self.patience, self.child.wait()).await??;
        Ok(())
    }

    /// Stops it where it stands, as a debugger or a paused machine does.
    ///
    /// # Errors
    ///
    /// If it has ended.
    pub fn pause(&self) -> Outcome {
        self.signal(Signal::STOP)
    }

    /// Lets it go on.
    ///
    /// # Errors
    ///
    /// If it has ended.
    pub fn resume(&self) -> Outcome {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> Outcome {
        let pid = self
            .child
            .id()
            .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let pid = pid.ok_or_else(|| Failure::new("the child has ended"))?;
        Ok(kill_process(pid, signal)?)
    }
}

fn encoded(name: &str) -> Outcome<String> {
    Ok(LockName::new(name)?.encoded())
}
