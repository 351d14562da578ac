//! Taking a lock, for `run` and `acquire`.

use std::time::Duration;

use lockkit::{ErrorKind, Guard, Label, LockName, Locker, Mutex, Primitive, Resource};

use crate::args::Taking;
use crate::duration::short;
use crate::exit::Failure;
use crate::open;
use crate::output::Output;
use crate::signals::Signals;
use crate::wait_line::{self, held_by};

/// How long to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Patience {
    None,
    Limited(Duration),
    Endless,
}

/// What the command line asks for, checked as far as that needs no backend.
#[derive(Debug)]
pub(crate) struct Claim {
    resource: Resource,
    label: Label,
    patience: Patience,
    ttl: Duration,
    fair: bool,
    conflict: u8,
}

impl Claim {
    /// Checks what was asked for; `program` is who holds it if no label was given.
    ///
    /// # Errors
    ///
    /// A bad name or label.
    pub(crate) fn new(taking: Taking, program: &str) -> Result<Self, Failure> {
        let patience = match taking.wait {
            _ if taking.no_wait => Patience::None,
            Some(Duration::ZERO) => Patience::None,
            Some(limit) => Patience::Limited(limit),
            None => Patience::Endless,
        };
        Ok(Self {
            resource: Resource::new(Primitive::Mutex, LockName::new(taking.name)?),
            label: Label::new(taking.label.as_deref().unwrap_or(program))?,
            patience,
            ttl: taking.ttl,
            fair: taking.fair,
            conflict: taking.conflict_exit_code,
        })
    }

    /// The name of the lock.
    pub(crate) fn name(&self) -> &LockName {
        self.resource.name()
    }

    /// Who asks.
    pub(crate) fn label(&self) -> &Label {
        &self.label
    }

    /// The lease to ask for.
    pub(crate) fn ttl(&self) -> Duration {
        self.ttl
    }

    fn mutex(&self, locker: &Locker) -> Mutex {
        let mutex = locker
            .mutex(self.name().as_str())
            .ttl(self.ttl)
            .label(self.label.text());
        let mutex = if self.fair { mutex.fair() } else { mutex };
        match self.patience {
            Patience::Limited(limit) => mutex.wait(limit),
            Patience::None | Patience::Endless => mutex,
        }
    }

    /// Takes the lock, unless a signal comes first. To be followed by [`open::close`] in any case,
    /// which withdraws a wait that was broken off.
    ///
    /// # Errors
    ///
    /// Somebody else holds it, a signal, or what the backend says.
    pub(crate) async fn take(
        &self,
        locker: &Locker,
        signals: &mut Signals,
        output: &Output,
    ) -> Result<Guard, Failure> {
        let mutex = self.mutex(locker);
        let work = async {
            if self.patience == Patience::None {
                return mutex.try_lock().await;
            }
            tokio::select! {
                biased;
                guard = mutex.lock() => match guard {
                    Err(error) if error.kind() == ErrorKind::Timeout => Ok(None),
                    guard => guard.map(Some),
                },
                never = wait_line::show(locker, &self.resource, output) => match never {},
            }
        };
        let work = async { Ok(work.await?) };
        match open::unless_signalled(signals, work).await? {
            Some(guard) => Ok(guard),
            None => Err(self.conflict(locker, output).await),
        }
    }

    /// The failure of not getting it, with who has it.
    async fn conflict(&self, locker: &Locker, output: &Output) -> Failure {
        let name = self.name();
        let mut message = match self.patience {
            Patience::Limited(limit) => {
                format!("gave up waiting for \"{name}\" after {}", short(limit))
            }
            Patience::None | Patience::Endless => format!("\"{name}\" is taken"),
        };
        if !output.is_quiet() {
            let holders = locker.inspect(&self.resource).await.ok();
            if let Some(holders) = holders.as_ref().and_then(held_by) {
                message = format!("{message}: {holders}");
            }
        }
        Failure::new(self.conflict, "conflict", message)
    }
}
