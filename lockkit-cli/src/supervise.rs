//! Looking after CMD while it runs: signals, requests for the lock and its loss, the grace before
//! KILL.

use std::io::{self, IsTerminal as _};
use std::process::ExitStatus;
use std::time::Duration;

use lockkit::{Guard, LossReason};
use rustix::process::{Signal, getpgrp, getpid};
use rustix::termios::tcgetpgrp;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use crate::args::{OnLost, OnRequest};
use crate::child::Child;
use crate::output::Output;
use crate::signals::Signals;

/// What the command line says about CMD.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// From TERM to KILL.
    pub(crate) kill_after: Duration,
    /// What happens when the lock is lost.
    pub(crate) on_lost: OnLost,
    /// What happens when somebody asks for it.
    pub(crate) on_request: OnRequest,
    /// Whether CMD shares our process group, and with it the terminal.
    pub(crate) foreground: bool,
}

/// What happens to the lock while CMD runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// It is not ours any more.
    Lost(LossReason),
    /// Somebody asks for it.
    Requested,
}

/// How it went.
#[derive(Debug)]
pub(crate) struct Ended {
    /// How CMD ended.
    pub(crate) status: ExitStatus,
    /// Whether the lock was lost before.
    pub(crate) lost: Option<LossReason>,
}

/// Waits for CMD to end. Passes signals on, and ends CMD if the lock is lost, or asked for and the
/// rules say so: `say` is told first.
///
/// # Errors
///
/// The operating system cannot wait for CMD.
pub(crate) async fn supervise(
    child: &mut Child,
    guard: &Guard,
    signals: &mut Signals,
    rules: &Rules,
    output: &Output,
    say: impl Fn(Event),
) -> io::Result<Ended> {
    let (mut lost, mut requested) = (None, false);
    let (mut ended, mut kill_at) = (false, None);
    let mut requests_to_end = 0_u32;
    let mut stops = terminal_stops(rules);
    let status = loop {
        tokio::select! {
            biased;
            status = child.wait() => break status?,
            reason = guard.lost(), if lost.is_none() => {
                lost = Some(reason);
                say(Event::Lost(reason));
                if rules.on_lost == OnLost::Kill {
                    end(child, rules, &mut kill_at);
                    ended = true;
                }
            }
            () = guard.revocation_requested(), if !requested => {
                requested = true;
                say(Event::Requested);
                if rules.on_request == OnRequest::Term {
                    end(child, rules, &mut kill_at);
                    ended = true;
                }
            }
            signal = signals.next() => {
                if !rules.foreground || !came_from_terminal(signal) {
                    child.signal(signal);
                    requests_to_end += u32::from(matches!(signal, Signal::INT | Signal::TERM));
                    if requests_to_end == 2 {
                        kill_later(rules, &mut kill_at);
                    }
                }
                match signal {
                    Signal::INT | Signal::TERM | Signal::HUP | Signal::QUIT => {
                        child.signal(Signal::CONT);
                    }
                    Signal::TSTP => output.warning(&format!(
                        "CMD is stopped and \"{}\" stays locked; `kill -CONT {}` continues it",
                        guard.name(),
                        getpid(),
                    )),
                    _ => {}
                }
            }
            () = at(kill_at) => {
                kill_at = None;
                child.signal(Signal::KILL);
            }
            () = next(&mut stops) => {
                if matches!(child.stopped_by(), Some(Signal::TTIN | Signal::TTOU)) {
                    stops = None;
                    output.warning(
                        "CMD wants the terminal and is stopped; end it with Ctrl-C, twice if need \
                         be, and give it --foreground",
                    );
                }
            }
        }
    };
    if ended {
        // CMD has obeyed; what it started may need the KILL yet.
        tokio::select! {
            () = child.group_gone() => {}
            () = at(kill_at) => child.signal(Signal::KILL),
        }
    }
    Ok(Ended { status, lost })
}

/// TERM now, KILL after the grace. A stopped process does not act on a signal before it is
/// continued.
fn end(child: &Child, rules: &Rules, kill_at: &mut Option<Instant>) {
    child.signal(Signal::TERM);
    child.signal(Signal::CONT);
    kill_later(rules, kill_at);
}

/// Sets the end of the grace, unless it runs already.
fn kill_later(rules: &Rules, kill_at: &mut Option<Instant>) {
    *kill_at = kill_at.or(Instant::now().checked_add(rules.kill_after));
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Whether CMD, being in our process group, has had this signal from the terminal already.
fn came_from_terminal(signal: Signal) -> bool {
    matches!(
        signal,
        Signal::INT | Signal::QUIT | Signal::TSTP | Signal::WINCH
    ) && tcgetpgrp(io::stdin()).is_ok_and(|group| group == getpgrp())
}

/// Tells when a child stops, where CMD might be stopped for touching a terminal from a process
/// group in its background.
fn terminal_stops(rules: &Rules) -> Option<tokio::signal::unix::Signal> {
    if rules.foreground || !io::stdin().is_terminal() {
        return None;
    }
    signal(SignalKind::child()).ok()
}

async fn next(signals: &mut Option<tokio::signal::unix::Signal>) {
    match signals {
        Some(signals) => {
            signals.recv().await;
        }
        None => std::future::pending().await,
    }
}
