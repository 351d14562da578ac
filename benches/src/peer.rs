//! This program again, in a process of its own.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

/// How long a peer may take to say something. Far longer than anything measured.
const PATIENCE: Duration = Duration::from_secs(60);

/// A child process that is told what to do line by line and answers line by line. It is killed
/// when this is dropped.
#[derive(Debug)]
pub(crate) struct Peer {
    child: Child,
    orders: ChildStdin,
    answers: Receiver<String>,
}

impl Peer {
    /// Starts the hidden sub-command `part` with these arguments.
    pub(crate) fn start<'a>(args: impl IntoIterator<Item = &'a str>) -> Result<Self> {
        let mut child = Command::new(env::current_exe()?)
            .arg("part")
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let orders = child.stdin.take().context("the pipe was asked for")?;
        let output = BufReader::new(child.stdout.take().context("the pipe was asked for")?);
        let (sender, answers) = channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Self {
            child,
            orders,
            answers,
        })
    }

    /// Sends one line.
    pub(crate) fn tell(&mut self, order: &str) -> Result<()> {
        writeln!(self.orders, "{order}").context("the child process has ended")
    }

    /// Waits for one line.
    pub(crate) fn hear(&self) -> Result<String> {
        self.answers
            .recv_timeout(PATIENCE)
            .context("the child process says nothing")
    }

    /// A line that is there already.
    pub(crate) fn heard(&self) -> Option<String> {
        self.answers.try_recv().ok()
    }

    /// Ends it by SIGKILL and does not wait for it.
    pub(crate) fn kill(&mut self) -> Result<()> {
        Ok(self.child.kill()?)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Both fail only for a process that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
