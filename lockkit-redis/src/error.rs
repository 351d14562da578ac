//! Failures in the words of core.

use lockkit_core::{Error, ErrorKind};

use crate::descriptor::DRIVER;
use crate::transport::Failure;

/// What a failure means to the caller.
pub(crate) fn translated(failure: Failure) -> Error {
    let error = match failure {
        Failure::Refused { code, detail } => refused(&code, &detail),
        Failure::Broken(why) => {
            let message = "the connection to the server broke";
            Error::new(ErrorKind::Unavailable, message).because(why)
        }
        Failure::Silent(millis) => {
            let message = "the server did not answer in time; if it is only slow, raise `timeout`";
            Error::new(ErrorKind::Unavailable, message).with("waited", format!("{millis} ms"))
        }
    };
    error.on(DRIVER)
}

fn refused(code: &str, detail: &str) -> Error {
    let (kind, message) = match code {
        "LOADING" | "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN" | "BUSY" | "UNKILLABLE"
        | "READONLY" | "MOVED" | "ASK" | "NOREPLICAS" => (
            ErrorKind::Unavailable,
            "the server cannot take this at the moment",
        ),
        "WRONGPASS" | "NOAUTH" => (
            ErrorKind::PermissionDenied,
            "the server refuses the login; check user and password in the URL",
        ),
        "NOPERM" => (
            ErrorKind::PermissionDenied,
            "this user lacks a right on the server; grant what the backend's docs list",
        ),
        "OOM" => (
            ErrorKind::Full,
            "the server is out of memory; raise its `maxmemory`, or use one that is for locks only",
        ),
        "MISCONF" => (
            ErrorKind::Full,
            "the server cannot write to its disk, so it takes no writes",
        ),
        "WRONGTYPE" | "CORRUPT" => (
            ErrorKind::Corrupt,
            "another program, or another version, keeps something else under this key; use \
             another `prefix`",
        ),
        "CROSSSLOT" => (
            ErrorKind::InvalidConfig,
            "this server is a node of a cluster; write redis+cluster://HOST:PORT",
        ),
        _ if detail.starts_with("unknown command") => (
            ErrorKind::Unsupported,
            "the server does not know a command that locks need; enable it, or write \
             `strategy=simple` if it runs no scripts",
        ),
        _ => (ErrorKind::Unexpected, "the server refused the request"),
    };
    Error::new(kind, message).because(format!("{code} {detail}"))
}

/// An answer that no script of ours gives.
pub(crate) fn odd(what: &str) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        format!("the server answered {what} in a form that this version does not know"),
    )
    .on(DRIVER)
}

/// The error once more, for the next one of a batch.
pub(crate) fn repeat(error: &Error) -> Error {
    Error::new(error.kind(), error.message()).on(DRIVER)
}
