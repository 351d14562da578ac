//! The commands that hold a lock.

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args as ClapArgs, ValueEnum};

use super::Taking;
use crate::{duration, examples, exit};

/// Hold a lock while a program runs
///
/// Waits for the lock NAME, runs CMD, and releases the lock when CMD ends. Processes that CMD
/// leaves behind do not keep it. CMD finds LOCKKIT_KEY, LOCKKIT_FENCING_TOKEN, LOCKKIT_MODE,
/// LOCKKIT_BACKEND and LOCKKIT_HOLDER in its environment, and LOCKKIT_SEGMENT if it has a segment.
/// A backend without fencing tokens (see `lockkit backends`) leaves LOCKKIT_FENCING_TOKEN unset.
/// Signals are passed on to CMD and its process group.
///
/// Each kind of lock has names of its own: the plain lock NAME, the one that is --shared or
/// --exclusive, the permits of NAME and the segments of NAME do not exclude each other.
#[derive(Debug, ClapArgs)]
#[command(after_long_help = format!("{}\n\n{}", examples::help("run"), exit::help()))]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) taking: Taking,
    /// Time from TERM to KILL when CMD is ended, or after a second INT or TERM
    #[arg(short, long, value_name = "DUR", default_value = "5s", value_parser = duration::parse)]
    pub(crate) kill_after: Duration,
    /// What happens to CMD when the lock is lost
    #[arg(long, value_enum, default_value_t, value_name = "ACTION")]
    pub(crate) on_lost: OnLost,
    /// Exit code if the lock was lost while CMD ran
    #[arg(long, value_name = "N", default_value_t = exit::LOST)]
    pub(crate) lost_exit_code: u8,
    /// What happens to CMD when somebody asks for the lock, with `request-release`
    #[arg(long, value_enum, default_value_t, value_name = "ACTION")]
    pub(crate) on_request: OnRequest,
    /// Leave CMD in the foreground of the terminal, for interactive programs
    ///
    /// Without it CMD has a process group of its own, so that all of it can be signalled, and
    /// cannot read from the terminal.
    #[arg(long)]
    pub(crate) foreground: bool,
    /// Run this text through $SHELL -c
    #[arg(short = 'c', long, value_name = "STRING", conflicts_with = "command")]
    pub(crate) shell: Option<OsString>,
    /// The program and its arguments
    #[arg(
        value_name = "CMD",
        trailing_var_arg = true,
        num_args = 1..,
        required_unless_present = "shell"
    )]
    pub(crate) command: Vec<OsString>,
}

/// What happens to CMD when the lock is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnLost {
    /// TERM at once, KILL after the grace
    #[default]
    Kill,
    /// One line on stderr
    Warn,
}

/// What happens to CMD when somebody asks for the lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnRequest {
    /// One line on stderr
    #[default]
    Warn,
    /// TERM, KILL after the grace; the exit code is that of CMD
    Term,
    /// Nothing
    Ignore,
}

/// Take a lock and print an id that renews and releases it
///
/// The lock is held for --ttl from now, whatever becomes of this process, unless `renew` prolongs
/// or `release` ends it. The id is a capability: whoever knows it can release the lock. Which
/// segment was taken is in the output of --format json.
#[derive(Debug, ClapArgs)]
#[command(after_long_help = examples::help("acquire"))]
pub(crate) struct Acquire {
    #[command(flatten)]
    pub(crate) taking: Taking,
}

/// Prolong a lock taken by `acquire`
///
/// Exits with 79 if ID holds nothing any more: the lock ran out, was broken or was released.
#[derive(Debug, ClapArgs)]
pub(crate) struct Renew {
    /// What `acquire` printed
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// How long it is held from now
    #[arg(short, long, value_name = "DUR", default_value = "30s", value_parser = duration::parse)]
    pub(crate) ttl: Duration,
}

/// Release a lock taken by `acquire`
///
/// Exits with 79 if ID holds nothing any more: the lock ran out, was broken or was released.
#[derive(Debug, ClapArgs)]
pub(crate) struct Release {
    /// What `acquire` printed
    #[arg(value_name = "ID")]
    pub(crate) id: String,
}
