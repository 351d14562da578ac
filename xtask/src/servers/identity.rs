//! Whether a process is still the one that was written down.

use std::fs;
use std::process::Command;

use super::state::{Server, State};
use crate::workspace::output;

impl State {
    /// Whether the process that keeps the servers is there.
    pub(super) fn is_kept(&self) -> bool {
        command_line(self.keeper).is_some_and(|line| line.contains("servers up redis"))
    }
}

impl Server {
    /// Whether its process is there and is still this server: its number may have gone to
    /// another one since.
    pub(super) fn is_there(&self) -> bool {
        // A server calls itself `redis-server 127.0.0.1:PORT …`.
        let address = format!("127.0.0.1:{}", self.port);
        command_line(self.pid).is_some_and(|line| {
            let mut words = line.split(' ');
            words.next().is_some_and(|word| word.ends_with("-server"))
                && words.next() == Some(&address)
        })
    }
}

/// The program and arguments of a process, separated by blanks.
fn command_line(pid: u32) -> Option<String> {
    if cfg!(target_os = "linux") {
        // There where `ps` is not installed, too.
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
        return Some(line.trim_end_matches('\0').replace('\0', " "));
    }
    output(Command::new("ps").args(["-o", "args=", "-p", &pid.to_string()])).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_process_with_the_number_of_a_server_is_not_that_server() {
        let this = Server {
            role: "single".into(),
            port: 6379,
            pid: std::process::id(),
        };
        assert!(command_line(this.pid).is_some());
        assert!(!this.is_there());
    }
}
