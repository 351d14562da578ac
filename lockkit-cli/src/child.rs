//! CMD: started so that it cannot outlive `lockkit` by accident, and signalled as a whole.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpid, getppid, kill_process, kill_process_group,
    test_kill_process_group, waitid,
};

use crate::{exit, output};

/// The first argument of the shim: `lockkit __child PARENT -- CMD…`.
const SHIM: &str = "__child";

/// How often a group is looked at that has lost its leader.
const GROUP_POLL: Duration = Duration::from_millis(20);

/// Becomes CMD, if this process was started for that; returns the exit status if it cannot.
///
/// A process can only ask for itself to be killed when its parent dies, hence this step between
/// `lockkit` and CMD. It must run before anything else, for it is on the way of every CMD.
pub(crate) fn shim() -> Option<u8> {
    let mut args = std::env::args_os().skip(1);
    if args.next()? != SHIM {
        return None;
    }
    let parent = args.next().and_then(|pid| pid.to_str()?.parse().ok());
    let program = args.nth(1)?;
    Some(become_command(parent, &program, args))
}

fn become_command(
    parent: Option<i32>,
    program: &OsString,
    args: impl Iterator<Item = OsString>,
) -> u8 {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_parent_process_death_signal(Some(Signal::KILL)) {
        output::line(&format!("cannot tie CMD to lockkit: {error}"));
        return exit::NOT_EXECUTABLE;
    }
    // The parent may have died before the request above: then nobody will kill this process.
    if getppid().map(Pid::as_raw_pid) != parent {
        return exit::of_signal(Signal::KILL);
    }
    let error = std::process::Command::new(program).args(args).exec();
    let shown = Path::new(program).display();
    if error.kind() != io::ErrorKind::NotFound {
        output::line(&format!("cannot run {shown}: {error}"));
        return exit::NOT_EXECUTABLE;
    }
    if Path::new(program).is_file() {
        output::line(&format!(
            "cannot run {shown}: the interpreter in its first line is missing"
        ));
    } else {
        output::line(&format!(
            "cannot run {shown}: not found; check its spelling and your PATH"
        ));
    }
    exit::NOT_FOUND
}

/// CMD, running.
#[derive(Debug)]
pub(crate) struct Child {
    process: tokio::process::Child,
    pid: Pid,
    foreground: bool,
}

impl Child {
    /// Starts CMD. To be called on the main thread, because the kernel ties it to the *thread*.
    ///
    /// A variable without a value is taken out of its environment. `session` is the file lock that shows this process to be alive. CMD inherits it and passes
    /// it on, so that whatever survives `lockkit` keeps the lock until it ends, too.
    ///
    /// # Errors
    ///
    /// What the operating system says. That CMD itself is missing is told by its exit status.
    pub(crate) fn spawn(
        command: &[OsString],
        environment: impl IntoIterator<Item = (&'static str, Option<String>)>,
        session: Option<File>,
        foreground: bool,
    ) -> io::Result<Self> {
        let mut shim = tokio::process::Command::new(own_program()?);
        shim.arg0("lockkit")
            .arg(SHIM)
            .arg(getpid().as_raw_pid().to_string())
            .arg("--");
        shim.args(command);
        for (variable, value) in environment {
            match value {
                Some(value) => shim.env(variable, value),
                None => shim.env_remove(variable),
            };
        }
        if !foreground {
            shim.process_group(0);
        }
        if let Some(session) = &session {
            fcntl_setfd(session, FdFlags::empty())?;
        }
        let process = shim.spawn()?;
        let pid = process
            .id()
            .and_then(|pid| Pid::from_raw(pid.cast_signed()));
        let pid = pid.ok_or_else(|| io::Error::other("CMD has no process id"))?;
        Ok(Self {
            process,
            pid,
            foreground,
        })
    }

    /// Waits for CMD to end.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.process.wait().await
    }

    /// Signals the process group of CMD, or CMD alone if it shares ours.
    pub(crate) fn signal(&self, signal: Signal) {
        // It may have ended just now, which is as good.
        let _ = if !self.foreground {
            kill_process_group(self.pid, signal)
        } else if self.process.id().is_some() {
            kill_process(self.pid, signal)
        } else {
            Ok(())
        };
    }

    /// The signal that CMD has just been stopped by, if any.
    pub(crate) fn stopped_by(&self) -> Option<Signal> {
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        let status = waitid(WaitId::Pid(self.pid), options).ok()??;
        Signal::from_named_raw(status.stopping_signal()?)
    }

    /// Waits until nothing is left of the process group, CMD itself having been waited for.
    pub(crate) async fn group_gone(&self) {
        while !self.foreground && test_kill_process_group(self.pid) != Err(Errno::SRCH) {
            tokio::time::sleep(GROUP_POLL).await;
        }
    }
}

/// This program, even if its file has been replaced since.
fn own_program() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") {
        Ok("/proc/self/exe".into())
    } else {
        std::env::current_exe()
    }
}
