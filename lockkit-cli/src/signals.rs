//! The signals that people and service managers send to `lockkit`.

use std::io;
use std::task::Poll;

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind};

/// What asks a process to end, be it by name or because most programs have no handler for it.
const ENDING: [Signal; 6] = [
    Signal::INT,
    Signal::TERM,
    Signal::HUP,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
];

/// What concerns a running CMD only.
const RELAYED: [Signal; 3] = [Signal::WINCH, Signal::TSTP, Signal::CONT];

/// The signals that this process catches.
///
/// What was ignored when it started stays ignored, for itself and for CMD: `nohup lockkit run …`
/// means just that.
#[derive(Debug)]
pub(crate) struct Signals {
    ignored: u64,
    caught: Vec<(Signal, unix::Signal)>,
}

impl Signals {
    /// Catches what asks to end. The rest keeps its default until there is a CMD to relay it to.
    pub(crate) fn ending() -> io::Result<Self> {
        let mut signals = Self {
            ignored: ignored(),
            caught: Vec::with_capacity(9),
        };
        signals.catch(&ENDING)?;
        Ok(signals)
    }

    /// Catches also what only CMD is concerned with.
    pub(crate) fn relay_all(&mut self) -> io::Result<()> {
        self.catch(&RELAYED)
    }

    fn catch(&mut self, wanted: &[Signal]) -> io::Result<()> {
        for &signal in wanted {
            if self.ignored & (1 << (signal.as_raw() - 1)) == 0 {
                let stream = unix::signal(SignalKind::from_raw(signal.as_raw()))?;
                self.caught.push((signal, stream));
            }
        }
        Ok(())
    }

    /// The next signal.
    pub(crate) async fn next(&mut self) -> Signal {
        std::future::poll_fn(|context| {
            for (signal, stream) in &mut self.caught {
                if stream.poll_recv(context).is_ready() {
                    return Poll::Ready(*signal);
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Does `work` unless a signal comes first, which is then the error.
    pub(crate) async fn unless<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Signal> {
        tokio::select! {
            biased;
            signal = self.next() => Err(signal),
            done = work => Ok(done),
        }
    }
}

/// The signals that are ignored now, as a bit for each; none where the system does not say.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

/// The name that people know a signal by.
pub(crate) fn name(signal: Signal) -> &'static str {
    match signal {
        Signal::INT => "SIGINT",
        Signal::TERM => "SIGTERM",
        Signal::HUP => "SIGHUP",
        Signal::QUIT => "SIGQUIT",
        Signal::USR1 => "SIGUSR1",
        Signal::USR2 => "SIGUSR2",
        _ => "a signal",
    }
}
