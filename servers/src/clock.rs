//! A clock that jumps.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

const SOURCE: &str = include_str!("clock.c");

/// The wall clock of the processes that are started with it, which can be set while they run. The
/// clocks by which they measure how long something took go on as they are.
///
/// Works for programs that are linked with the C library of a Linux, because it stands before
/// that; and needs a C compiler, as the build does.
#[derive(Debug)]
pub struct Clock {
    directory: TempDir,
}

impl Clock {
    /// A clock that tells the right time.
    ///
    /// # Errors
    ///
    /// If there is no C compiler by the name of `cc`, or nothing can be written.
    pub fn new() -> Result<Self> {
        // Not in memory: code may not be run from there everywhere.
        let directory = tempfile::Builder::new()
            .prefix("lockkit-clock-")
            .tempdir()?;
        let clock = Self { directory };
        clock.set(0)?;
        let source = clock.file("clock.c");
        fs::write(&source, SOURCE)?;
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .args([clock.library(), source])
            .output()
            .context("`cc` is needed to make a clock that jumps; install a C compiler")?;
        let said = String::from_utf8_lossy(&compiled.stderr);
        ensure!(compiled.status.success(), "`cc` failed:\n{said}");
        Ok(clock)
    }

    /// Sets it so many milliseconds after the right time; before it, if they are less than 0.
    ///
    /// # Errors
    ///
    /// If that cannot be written down.
    pub fn set(&self, milliseconds: i64) -> Result<()> {
        let offset = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.offset())?;
        // One write into a page that they all look at: nobody sees half of it.
        offset.write_all_at(&milliseconds.to_ne_bytes(), 0)?;
        Ok(())
    }

    /// A program that does what this one does, by this clock.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn wrapped(&self, program: &Path) -> Result<PathBuf> {
        let wrapper = self.file("wrapped");
        let variables: String = self
            .environment()
            .iter()
            .map(|(name, value)| format!("{name}='{}' ", value.display()))
            .collect();
        let program = program.display();
        let text = format!("#!/bin/sh\n{variables}exec '{program}' \"$@\"\n");
        fs::write(&wrapper, text)?;
        fs::set_permissions(&wrapper, Permissions::from_mode(0o700))?;
        Ok(wrapper)
    }

    /// What a process has to be started with.
    pub(crate) fn environment(&self) -> [(&'static str, PathBuf); 2] {
        [
            ("LD_PRELOAD", self.library()),
            ("LOCKKIT_TEST_CLOCK", self.offset()),
        ]
    }

    fn library(&self) -> PathBuf {
        self.file("clock.so")
    }

    fn offset(&self) -> PathBuf {
        self.file("offset")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    fn now_by(program: &Path) -> i64 {
        let output = Command::new(program).arg("+%s").output().unwrap();
        String::from_utf8(output.stdout)
            .unwrap()
            .trim()
            .parse()
            .unwrap()
    }

    #[test]
    fn a_process_is_told_what_the_clock_was_set_to() {
        const HOUR: i64 = 60 * 60;
        let clock = Clock::new().unwrap();
        let date = Path::new("/bin/date");
        let skewed = clock.wrapped(date).unwrap();
        for seconds in [0, 10 * HOUR, -20 * HOUR] {
            clock.set(seconds * 1_000).unwrap();
            let off = now_by(&skewed) - now_by(date) - seconds;
            assert!(off.abs() < 60, "{off} s off after {seconds}");
        }
    }
}
