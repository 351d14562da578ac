//! The command line of `cargo xtask servers`.

use anyhow::Result;
use clap::{Subcommand, ValueEnum};

use super::{down, install, status, up};
use crate::steps::Steps;

/// What to do with servers.
#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Installs the programs that tests start, unless they are there.
    ///
    /// With apt-get, as root. Elsewhere it says what to install by hand.
    Install {
        /// Which servers.
        kind: Kind,
    },
    /// Starts one of everything that tests need, and tells where.
    ///
    /// On free ports of 127.0.0.1, with nothing kept on disk for longer than they run. Standard
    /// output is lines for a shell: `eval "$(cargo xtask servers up redis --detach)"`, and then
    /// `cargo test -p lockkit-redis` as often as you like.
    Up {
        /// Which servers.
        kind: Kind,
        /// Return once they run; `servers down` ends them. Otherwise Ctrl-C does.
        #[arg(long)]
        detach: bool,
    },
    /// Shows which programs are installed and which servers are up.
    Status,
    /// Ends the servers that `up` has started, and no others.
    Down {
        /// Which servers.
        kind: Kind,
    },
}

/// The servers there are.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Kind {
    /// One alone, one with TLS, one with a user of few rights, a master and a replica with three
    /// sentinels, a cluster of six, five for RedLock.
    Redis,
}

/// Does it.
pub(crate) fn run(task: &Task) -> Result<()> {
    match task {
        Task::Install { kind: Kind::Redis } => install::redis(&mut Steps::default()),
        Task::Up {
            kind: Kind::Redis,
            detach: false,
        } => up::in_the_foreground(),
        Task::Up {
            kind: Kind::Redis,
            detach: true,
        } => up::detached(),
        Task::Status => status::show(),
        Task::Down { kind: Kind::Redis } => down::redis(),
    }
}
