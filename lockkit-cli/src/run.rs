//! `lockkit run`: CMD, for as long as a lock is held.

use std::ffi::OsString;
use std::fmt::Display;
use std::path::Path;
use std::time::{Duration, Instant};

use lockkit::{Fence, Guard, Locker, LossReason, Unlocked};
use serde_json::json;

use crate::args::{Global, OnLost, OnRequest, Run};
use crate::child::Child;
use crate::duration::{millis, short};
use crate::exit::{self, Failure};
use crate::fence;
use crate::open;
use crate::output::Output;
use crate::shown::with_mode;
use crate::signals::{self, Signals};
use crate::supervise::{Event, Rules, supervise};
use crate::taking::{BEFORE, Claim};

/// Waits for the lock, runs CMD, releases the lock.
///
/// # Errors
///
/// Whatever kept CMD from being run. How CMD ended is the status, not an error.
pub(crate) async fn run(args: Run, global: &Global, output: &Output) -> Result<u8, Failure> {
    let command = match args.shell {
        Some(text) => {
            let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty());
            vec![shell.unwrap_or_else(|| "/bin/sh".into()), "-c".into(), text]
        }
        None => args.command,
    };
    let claim = Claim::new(args.taking, &program_name(&command))?;
    let url = open::url(global)?;
    open::check_ttl(&url, claim.ttl())?;

    let mut signals = Signals::ending()?;
    let connect = open::connect(&url, claim.label().text());
    let locker = open::unless_signalled(&mut signals, BEFORE, connect).await?;
    let rules = Rules {
        kill_after: args.kill_after,
        on_lost: args.on_lost,
        on_request: args.on_request,
        foreground: args.foreground,
    };
    let run = Running {
        locker: &locker,
        claim: &claim,
        rules,
        output,
    };
    let outcome = run
        .command(&command, &mut signals, args.lost_exit_code)
        .await;
    open::close(&locker, &mut signals, output).await;
    outcome
}

/// The label of a CMD: its name and nothing else, for arguments may be secret.
fn program_name(command: &[OsString]) -> String {
    let program = command.first().map(Path::new).and_then(Path::file_name);
    program
        .unwrap_or_default()
        .to_string_lossy()
        .chars()
        .take(50)
        .collect()
}

/// One `lockkit run`, connected.
struct Running<'a> {
    locker: &'a Locker,
    claim: &'a Claim,
    rules: Rules,
    output: &'a Output,
}

impl Running<'_> {
    async fn command(
        &self,
        command: &[OsString],
        signals: &mut Signals,
        lost_exit_code: u8,
    ) -> Result<u8, Failure> {
        let asked = Instant::now();
        let guard = self.claim.take(self.locker, signals, self.output).await?;
        let held = Instant::now();
        self.say_acquired(&guard, held - asked);

        signals.relay_all()?;
        let mut child = self.spawn(command, &guard)?;
        let fence = self.fence(&guard);
        let say = |event| match event {
            Event::Lost(reason) => self.say_lost(fence, reason, held),
            Event::Requested => self.say_requested(fence, held),
        };
        let ended = supervise(&mut child, &guard, signals, &self.rules, self.output, say).await?;
        let lost = match (ended.lost, self.release(guard, signals).await) {
            (None, Some(reason)) => {
                self.say_lost(fence, reason, held);
                true
            }
            (lost, _) => lost.is_some(),
        };
        if lost && self.rules.on_lost == OnLost::Kill {
            Ok(lost_exit_code)
        } else {
            Ok(exit::of_child(ended.status))
        }
    }

    fn fence(&self, guard: &Guard) -> Option<Fence> {
        fence::of(self.locker, guard.fence())
    }

    fn spawn(&self, command: &[OsString], guard: &Guard) -> Result<Child, Failure> {
        let backend = self.locker.descriptor().driver;
        let environment = [
            ("LOCKKIT_KEY", Some(guard.name().to_string())),
            ("LOCKKIT_MODE", Some(guard.mode().to_string())),
            ("LOCKKIT_BACKEND", Some(backend.to_owned())),
            ("LOCKKIT_HOLDER", Some(self.claim.label().to_string())),
            // Without one, not that of the lock around this one either.
            (
                "LOCKKIT_FENCING_TOKEN",
                self.fence(guard).map(|fence| fence.to_string()),
            ),
            ("LOCKKIT_SEGMENT", guard.segment().map(|s| s.to_string())),
        ];
        Child::spawn(
            command,
            environment,
            guard.session_file(),
            self.rules.foreground,
        )
        .map_err(|error| {
            let message = format!("cannot start CMD: {error}");
            Failure::new(exit::NOT_EXECUTABLE, "not executable", message)
        })
    }

    /// Lets go. That it fails is no reason to hide how CMD ended: the lease frees the lock.
    async fn release(&self, guard: Guard, signals: &mut Signals) -> Option<LossReason> {
        let (name, fence) = (guard.name().clone(), self.fence(&guard));
        let warn = |why: &dyn Display| {
            self.output.warning(&format!(
                "\"{name}\" may stay locked until its lease runs out: {why}"
            ));
        };
        match signals.unless(guard.unlock()).await {
            Ok(Ok(Unlocked::Lost(reason))) => return Some(reason),
            Ok(Ok(_)) => {
                let event = json!({
                    "event": "released",
                    "name": name.as_str(),
                    "fence": fence::json(fence),
                });
                self.output.note(event, || format!("released \"{name}\""));
            }
            Ok(Err(error)) => warn(&error),
            Err(signal) => warn(&signals::name(signal)),
        }
        None
    }

    fn say_acquired(&self, guard: &Guard, waited: Duration) {
        let (name, fence) = (guard.name(), self.fence(guard));
        let event = json!({
            "event": "acquired",
            "name": name.as_str(),
            "kind": guard.id().resource().primitive().as_str(),
            "fence": fence::json(fence),
            "waited_ms": millis(waited),
        });
        let mode = guard.mode();
        self.output.note(with_mode(event, mode), || {
            let waited = short(waited);
            let how = fence::and_mode(fence, mode);
            format!("acquired \"{name}\" after {waited} ({how})")
        });
    }

    fn say_requested(&self, fence: Option<Fence>, held: Instant) {
        let then = match self.rules.on_request {
            OnRequest::Term => "CMD is ended",
            OnRequest::Warn => "CMD goes on",
            OnRequest::Ignore => return,
        };
        let name = self.claim.name();
        let event = json!({
            "event": "release-requested",
            "name": name.as_str(),
            "fence": fence::json(fence),
            "held_ms": millis(held.elapsed()),
        });
        self.output
            .remark(event, &format!("somebody asks for \"{name}\"; {then}"));
    }

    fn say_lost(&self, fence: Option<Fence>, reason: LossReason, held: Instant) {
        let name = self.claim.name();
        let (word, why) = match reason {
            LossReason::Expired => ("expired", "its lease ran out before it could be renewed"),
            LossReason::Gone => ("gone", "it was broken, or ran out on the backend"),
            _ => ("closed", "lockkit is shutting down"),
        };
        let event = json!({
            "event": "lost",
            "name": name.as_str(),
            "fence": fence::json(fence),
            "reason": word,
            "held_ms": millis(held.elapsed()),
        });
        let then = match self.rules.on_lost {
            OnLost::Kill => "CMD is ended",
            OnLost::Warn => "CMD goes on without it",
        };
        let held = short(held.elapsed());
        let fence = fence.map_or_else(String::new, |fence| format!(" (fence {fence})"));
        self.output.news(
            event,
            &format!("lost \"{name}\" after {held}{fence}: {why}; {then}"),
        );
    }
}
