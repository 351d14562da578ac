//! Taking a lock, for `run` and `acquire`.

use std::time::Duration;

use lockkit::{Error, ErrorKind, Guard, Label, LockName, Locker, Resource};

use crate::args::Taking;
use crate::exit::Failure;
use crate::kind::{Kind, Lock};
use crate::open;
use crate::output::Output;
use crate::patience::Patience;
use crate::shown::held_by;
use crate::signals::Signals;
use crate::wait_line;

/// When a signal ends the wait.
pub(crate) const BEFORE: &str = "before it had the lock";

/// What the command line asks for, checked as far as that needs no backend.
#[derive(Debug)]
pub(crate) struct Claim {
    resource: Resource,
    kind: Kind,
    label: Label,
    patience: Patience,
    ttl: Duration,
    conflict: u8,
}

impl Claim {
    /// Checks what was asked for; `program` is who holds it if no label was given.
    ///
    /// # Errors
    ///
    /// A bad name, label or number.
    pub(crate) fn new(taking: Taking, program: &str) -> Result<Self, Failure> {
        let kind = Kind::new(taking.choice, taking.fair)?;
        Ok(Self {
            resource: Resource::new(kind.primitive(), LockName::new(taking.name)?),
            kind,
            label: Label::new(taking.label.as_deref().unwrap_or(program))?,
            patience: Patience::from(&taking.patience),
            ttl: taking.ttl,
            conflict: taking.patience.conflict_exit_code,
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

    fn lock(&self, locker: &Locker) -> Lock {
        let limit = self.patience.limit();
        let label = self.label.text();
        self.kind.lock(locker, self.name(), self.ttl, label, limit)
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
        let lock = self.lock(locker);
        let work = async {
            if self.patience == Patience::None {
                return lock.try_lock().await;
            }
            tokio::select! {
                biased;
                guard = lock.lock() => match guard {
                    Err(error) if error.kind() == ErrorKind::Timeout => Ok(None),
                    guard => guard.map(Some),
                },
                never = wait_line::show(locker, &self.resource, output) => match never {},
            }
        };
        let work = async { work.await.map_err(|error| self.failure(error)) };
        match open::unless_signalled(signals, BEFORE, work).await? {
            Some(guard) => Ok(guard),
            None => Err(self.conflict(locker, output).await),
        }
    }

    fn failure(&self, error: Error) -> Failure {
        let stored = error.context().find(|(key, _)| *key == "stored");
        let cure = stored.and_then(|(_, stored)| self.kind.mismatch(self.name(), stored));
        let mut failure = Failure::from(error);
        if let Some(cure) = cure {
            failure.message = cure;
        }
        failure
    }

    /// The failure of not getting it, with who has it.
    async fn conflict(&self, locker: &Locker, output: &Output) -> Failure {
        let name = self.name();
        let (what, none) = (format!("\"{name}\""), format!("\"{name}\" is taken"));
        let mut message = self.patience.in_vain(&what, &none);
        if !output.is_quiet()
            && let Ok(snapshot) = locker.inspect(&self.resource).await
        {
            if let Some(holders) = held_by(&snapshot) {
                message = format!("{message}: {holders}");
            }
            // We may be in it yet.
            let others = snapshot
                .waiters
                .iter()
                .filter(|one| one.label != self.label);
            let others = others.count();
            if others > 0 {
                message = format!("{message}; {others} in line");
            }
        }
        Failure::new(self.conflict, "conflict", message)
    }
}
