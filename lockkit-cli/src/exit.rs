//! What `lockkit` exits with. The numbers are an interface: scripts depend on them.

use std::fmt::Write as _;
use std::process::ExitStatus;

use lockkit::{Error, ErrorKind, NameError};
use rustix::process::Signal;

/// All went well.
pub(crate) const OK: u8 = 0;
/// The question of `break` was answered with no.
pub(crate) const DECLINED: u8 = 1;
/// The command line is wrong (`EX_USAGE`).
pub(crate) const USAGE: u8 = 64;
/// What is stored is damaged, foreign or of a newer version (`EX_DATAERR`).
pub(crate) const CORRUPT: u8 = 65;
/// The backend does not answer (`EX_UNAVAILABLE`).
pub(crate) const UNAVAILABLE: u8 = 69;
/// A bug, or something new (`EX_SOFTWARE`).
pub(crate) const INTERNAL: u8 = 70;
/// The backend has no room left, or a stream cannot be written (`EX_IOERR`).
pub(crate) const IO: u8 = 74;
/// Not now: somebody else holds the lock, a latch is not open (`EX_TEMPFAIL`).
pub(crate) const CONFLICT: u8 = 75;
/// The backend refuses the credentials, or a file its permissions (`EX_NOPERM`).
pub(crate) const PERMISSION: u8 = 77;
/// The URL, the environment or a number of permits is wrong (`EX_CONFIG`).
pub(crate) const CONFIG: u8 = 78;
/// The lock was lost: the first number after those of sysexits.h.
pub(crate) const LOST: u8 = 79;
/// CMD was found and could not be started.
pub(crate) const NOT_EXECUTABLE: u8 = 126;
/// CMD was not found.
pub(crate) const NOT_FOUND: u8 = 127;

/// The table of `--help` and of the manual.
pub(crate) const TABLE: [(&str, &str); 15] = [
    ("0", "success; `run`: CMD exited with 0"),
    ("n", "`run`: CMD exited with n"),
    ("1", "`break`: the question was answered with no"),
    ("64", "the command line is wrong, a bad lock name included"),
    (
        "65",
        "what is stored is damaged, foreign or of a newer version",
    ),
    (
        "69",
        "the backend cannot be reached or does not answer in time",
    ),
    ("70", "a bug in lockkit"),
    (
        "74",
        "the backend has no room left, or output cannot be written",
    ),
    (
        "75",
        "not now: somebody else holds the lock, or a latch is not open (change it with -E)",
    ),
    ("77", "permission denied"),
    (
        "78",
        "the URL or environment is wrong, NAME has another size, or the backend cannot do this",
    ),
    (
        "79",
        "the lock was lost while CMD ran (--lost-exit-code), or ID holds nothing any more",
    ),
    ("126", "`run`: CMD cannot be executed"),
    ("127", "`run`: CMD was not found"),
    (
        "128+n",
        "signal n ended CMD, or lockkit before it had the lock",
    ),
];

/// The table as a section of `--help`.
pub(crate) fn help() -> String {
    let mut text = String::from("Exit codes:");
    for (status, meaning) in TABLE {
        let _ = write!(text, "\n  {status:<6} {meaning}");
    }
    text
}

/// Why a command failed: one line for people, a number for scripts.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The exit status.
    pub(crate) status: u8,
    /// One word or two for programs.
    pub(crate) kind: &'static str,
    /// One line that names the cure.
    pub(crate) message: String,
}

impl Failure {
    /// A failure that is not an error of a backend.
    pub(crate) fn new(status: u8, kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            kind,
            message: message.into(),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let status = match error.kind() {
            ErrorKind::InvalidName | ErrorKind::InvalidArgument => USAGE,
            ErrorKind::InvalidConfig | ErrorKind::Unsupported | ErrorKind::ConfigMismatch => CONFIG,
            ErrorKind::Timeout => CONFLICT,
            ErrorKind::Lost => LOST,
            ErrorKind::Unavailable | ErrorKind::NotReplicated => UNAVAILABLE,
            ErrorKind::PermissionDenied => PERMISSION,
            ErrorKind::Full => IO,
            ErrorKind::Corrupt => CORRUPT,
            _ => INTERNAL,
        };
        Self::new(status, error.kind().as_str(), error.to_string())
    }
}

impl From<NameError> for Failure {
    fn from(error: NameError) -> Self {
        Self::new(USAGE, ErrorKind::InvalidName.as_str(), error.to_string())
    }
}

/// A failure of the operating system that has no better number.
impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(IO, "i/o", error.to_string())
    }
}

/// What a shell would say of a child that ended like this.
pub(crate) fn of_child(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt as _;
    let raw = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    raw.and_then(|raw| u8::try_from(raw).ok())
        .unwrap_or(INTERNAL)
}

/// What a shell would say of a process that this signal ended.
pub(crate) fn of_signal(signal: Signal) -> u8 {
    u8::try_from(128 + signal.as_raw()).unwrap_or(INTERNAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_error_has_a_number_of_the_table() {
        let kinds = [
            ErrorKind::InvalidName,
            ErrorKind::InvalidArgument,
            ErrorKind::InvalidConfig,
            ErrorKind::ConfigMismatch,
            ErrorKind::Unsupported,
            ErrorKind::Timeout,
            ErrorKind::Lost,
            ErrorKind::Unavailable,
            ErrorKind::PermissionDenied,
            ErrorKind::NotReplicated,
            ErrorKind::Full,
            ErrorKind::Overloaded,
            ErrorKind::Corrupt,
            ErrorKind::Closed,
            ErrorKind::Unexpected,
        ];
        for kind in kinds {
            let status = Failure::from(Error::new(kind, "x")).status.to_string();
            assert!(
                TABLE.iter().any(|(listed, _)| *listed == status),
                "{kind}: {status}"
            );
        }
    }
}
