//! The servers that the tests need.
//!
//! Memory and SQLite need none. A backend with a server adds it here: find or install its
//! program, start it on a free port in a directory of its own, and pass its URL to the tests in
//! the environment. A server that is asked for but does not start fails the task, because a test
//! that is skipped for want of a server proves nothing.

use std::process::Command;

use anyhow::Result;

use crate::steps::Steps;

/// The servers that were started for one task; dropping this ends them.
#[derive(Debug)]
pub(crate) struct Servers {
    urls: Vec<(&'static str, String)>,
}

impl Servers {
    /// Installs and starts what is missing, and waits until everything answers.
    pub(crate) fn start(_steps: &mut Steps) -> Result<Self> {
        Ok(Self { urls: Vec::new() })
    }

    /// Tells a test command where the servers are.
    pub(crate) fn announce(&self, command: &mut Command) {
        command.envs(self.urls.iter().map(|(name, url)| (name, url)));
    }
}
