//! Runs commands one after the other, tells what they are and how long they took.

use std::ffi::OsStr;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// The steps of one task, with their durations.
#[derive(Debug, Default)]
pub(crate) struct Steps(Vec<(String, Duration)>);

impl Steps {
    /// Runs `command` without standard input and stops the task if it fails.
    pub(crate) fn run(&mut self, command: &mut Command) -> Result<()> {
        let line = command_line(command);
        self.step(&line, || {
            let status = command
                .stdin(Stdio::null())
                .status()
                .with_context(|| format!("cannot start; is it installed? {line}"))?;
            if !status.success() {
                bail!("failed with {status}; repeat it with\n  {line}");
            }
            Ok(())
        })
    }

    /// Runs a step that is more than one command.
    pub(crate) fn step<T>(&mut self, title: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        eprintln!("\n==> {title}");
        let started = Instant::now();
        let outcome = work();
        let took = started.elapsed();
        eprintln!(
            "<== {} after {:.1} s",
            verdict(&outcome),
            took.as_secs_f64()
        );
        self.0.push((title.to_owned(), took));
        outcome
    }

    /// Prints what was done. Called once everything has passed.
    pub(crate) fn summary(&self) {
        eprintln!("\nAll passed:");
        for (title, took) in &self.0 {
            eprintln!("{:8.1} s  {title}", took.as_secs_f64());
        }
        let total: Duration = self.0.iter().map(|(_, took)| *took).sum();
        eprintln!("{:8.1} s  in all", total.as_secs_f64());
    }
}

fn verdict<T>(outcome: &Result<T>) -> &'static str {
    if outcome.is_ok() { "passed" } else { "FAILED" }
}

/// `cargo` with these arguments, separated by blanks.
pub(crate) fn cargo(args: &str) -> Command {
    let mut command = Command::new("cargo");
    command.args(args.split_whitespace());
    command
}

/// The command as a line for a shell, environment included.
fn command_line(command: &Command) -> String {
    let set = command
        .get_envs()
        .filter_map(|(key, value)| Some(format!("{}={}", key.to_string_lossy(), quoted(value?))));
    let words = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(quoted);
    set.chain(words).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=+:@%~,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_command_can_be_pasted_into_a_shell() {
        let mut command = cargo("doc --no-deps");
        command.env("RUSTDOCFLAGS", "-D warnings").arg("it's");
        assert_eq!(
            command_line(&command),
            r"RUSTDOCFLAGS='-D warnings' cargo doc --no-deps 'it'\''s'"
        );
    }
}
