//! From what SQLite says to what a user can do about it.

use std::io;
use std::path::Path;

use lockkit_core::{Error, ErrorKind};

use super::descriptor::DRIVER;

/// Why a job failed.
#[derive(Debug)]
pub(super) enum Fault {
    /// SQLite or its driver said so.
    Sql(sqlx::Error),
    /// Already in our words.
    Told(Error),
}

impl From<sqlx::Error> for Fault {
    fn from(error: sqlx::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Told(error)
    }
}

impl Fault {
    /// Whether the connection is as good as before, so that there is no need for a new one.
    pub(super) fn spares_the_connection(&self) -> bool {
        match self {
            Self::Sql(error) => matches!(primary_code(error), Some(BUSY | LOCKED | FULL)),
            Self::Told(_) => true,
        }
    }

    pub(super) fn is_busy(&self) -> bool {
        matches!(self, Self::Sql(error) if matches!(primary_code(error), Some(BUSY | LOCKED)))
    }

    pub(super) fn into_error(self, database: &Path) -> Error {
        match self {
            Self::Told(error) => error.on(DRIVER),
            Self::Sql(error) => {
                let (kind, message) = explain(&error);
                Error::new(kind, message)
                    .on(DRIVER)
                    .with("path", database.display())
                    .because(error)
            }
        }
    }
}

const PERM: i32 = 3;
const BUSY: i32 = 5;
const LOCKED: i32 = 6;
const READONLY: i32 = 8;
const IOERR: i32 = 10;
const CORRUPT: i32 = 11;
const FULL: i32 = 13;
const CANTOPEN: i32 = 14;
const PROTOCOL: i32 = 15;
const AUTH: i32 = 23;
const NOTADB: i32 = 26;
/// An extended code: the file was renamed or removed under SQLite.
const READONLY_DBMOVED: i32 = READONLY | (4 << 8);

fn explain(error: &sqlx::Error) -> (ErrorKind, &'static str) {
    let Some(code) = code(error) else {
        return match error {
            sqlx::Error::Database(_) | sqlx::Error::ColumnDecode { .. } => {
                (ErrorKind::Corrupt, DAMAGED)
            }
            _ => (
                ErrorKind::Unavailable,
                "the connection broke; the next call opens a new one",
            ),
        };
    };
    if code == READONLY_DBMOVED {
        return (
            ErrorKind::Unavailable,
            "the database file was removed or replaced; the next call opens the new one",
        );
    }
    match code & 0xff {
        BUSY | LOCKED | PROTOCOL => (
            ErrorKind::Unavailable,
            "another process kept the database locked too long; look for one that is stopped \
             inside a transaction, or raise busy_timeout in the URL",
        ),
        FULL => (
            ErrorKind::Full,
            "no room left on the disk; free some, nothing is damaged",
        ),
        READONLY | PERM | AUTH => (
            ErrorKind::PermissionDenied,
            "the database cannot be written; give this user write access to the file and to its \
             directory",
        ),
        CANTOPEN => (
            ErrorKind::PermissionDenied,
            "the database cannot be opened; give this user read and write access to the file and \
             to its directory",
        ),
        IOERR => (
            ErrorKind::Unavailable,
            "reading or writing the database failed; check the disk and the system log",
        ),
        CORRUPT | NOTADB => (ErrorKind::Corrupt, DAMAGED),
        _ if error.to_string().contains("no such") => (ErrorKind::Corrupt, DAMAGED),
        _ => (
            ErrorKind::Unexpected,
            "SQLite answered with something new; please report it",
        ),
    }
}

const DAMAGED: &str = "this is no lock database, or a damaged one, and was left untouched; give \
                       another path, or stop every process that uses it and move it away";

fn code(error: &sqlx::Error) -> Option<i32> {
    error.as_database_error()?.code()?.parse().ok()
}

fn primary_code(error: &sqlx::Error) -> Option<i32> {
    code(error).map(|code| code & 0xff)
}

/// An error of the file system, met while `doing` something to `path`.
pub(super) fn file_error(doing: &str, path: &Path, error: io::Error) -> Error {
    use io::ErrorKind as Io;
    let (kind, cure) = match error.kind() {
        Io::PermissionDenied | Io::ReadOnlyFilesystem => (
            ErrorKind::PermissionDenied,
            "give this user access to it, or choose another path",
        ),
        Io::StorageFull | Io::QuotaExceeded => (ErrorKind::Full, "free some room on the disk"),
        Io::NotFound | Io::NotADirectory | Io::IsADirectory | Io::InvalidFilename => {
            (ErrorKind::InvalidConfig, "correct the path in the URL")
        }
        _ => (ErrorKind::Unavailable, "try again, or choose another path"),
    };
    Error::new(kind, format!("cannot {doing}; {cure}"))
        .on(DRIVER)
        .with("path", path.display())
        .because(error)
}

/// The same error once more, for the other ids of one request.
pub(super) fn repeat(error: &Error) -> Error {
    let again = Error::new(error.kind(), error.message()).on(DRIVER);
    error
        .context()
        .fold(again, |again, (key, value)| again.with(key, value))
}

pub(super) fn closed() -> Error {
    Error::new(ErrorKind::Closed, "this backend was closed; connect again").on(DRIVER)
}
