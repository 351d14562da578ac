//! Another process: this program again, or a driver of other lock libraries.

use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
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
        let mut command = Command::new(env::current_exe()?);
        command.arg("part").args(args);
        Self::spawn(&mut command)
    }

    /// Starts a program. What it writes to its standard error is an answer too if that is piped.
    pub(crate) fn spawn(command: &mut Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().display()))?;
        let orders = child.stdin.take().context("the pipe was asked for")?;
        let (sender, answers) = channel();
        if let Some(errors) = child.stderr.take() {
            pass_on(errors, sender.clone());
        }
        pass_on(
            child.stdout.take().context("the pipe was asked for")?,
            sender,
        );
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

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
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

/// Sends each line on from a thread of its own.
fn pass_on(output: impl Read + Send + 'static, sender: Sender<String>) {
    thread::spawn(move || {
        BufReader::new(output)
            .lines()
            .map_while(Result::ok)
            .try_for_each(|line| sender.send(line))
    });
}
