//! The two streams: stdout belongs to results and to CMD, everything else is on stderr.

use std::io::{self, Write as _};

use serde_json::{Value, json};

use crate::args::{Format, Global};
use crate::exit::Failure;

/// The longest line that is written about a mistake, in characters.
const LINE: usize = 600;

/// How this run speaks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    quiet: bool,
    verbose: bool,
    format: Format,
}

impl Output {
    /// As the command line asks.
    pub(crate) fn new(global: &Global) -> Self {
        Self {
            quiet: global.quiet,
            verbose: global.verbose > 0,
            format: global.format,
        }
    }

    /// Whether programs read this.
    pub(crate) fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// Whether only errors are wanted.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Says why it ends.
    pub(crate) fn failure(&self, failure: &Failure) {
        let Failure {
            status,
            kind,
            message,
        } = failure;
        if self.is_json() {
            event(json!({
                "event": "error", "kind": kind, "message": message, "exit_code": status,
            }));
        } else {
            line(message);
        }
    }

    /// Says something that people must know: an event for programs, a line for people.
    pub(crate) fn news(&self, value: Value, text: &str) {
        if self.is_json() {
            event(value)
        } else {
            line(text)
        }
    }

    /// Says something that went wrong without being an error; silent with `-q`.
    pub(crate) fn warning(&self, text: &str) {
        self.remark(json!({ "event": "warning", "message": text }), text);
    }

    /// Says something that people want to know; silent with `-q`.
    pub(crate) fn remark(&self, value: Value, text: &str) {
        if !self.quiet {
            self.news(value, text);
        }
    }

    /// Says something that few want to know: always an event, a line with `-v`.
    pub(crate) fn note(&self, value: Value, text: impl FnOnce() -> String) {
        if self.is_json() {
            event(value);
        } else if self.verbose {
            line(&text());
        }
    }
}

/// Writes `lockkit: text` on stderr, on one line whatever `text` holds.
pub(crate) fn line(text: &str) {
    let mut shown = String::with_capacity(text.len());
    for (i, c) in text.chars().enumerate() {
        if i == LINE {
            shown.push('…');
            break;
        }
        if c.is_control() {
            shown.extend(c.escape_default())
        } else {
            shown.push(c)
        }
    }
    raw(&format!("lockkit: {shown}\n"));
}

fn event(value: Value) {
    raw(&format!("{value}\n"));
}

/// Writes to stderr, all at once because CMD writes there too.
pub(crate) fn raw(text: &str) {
    // Nobody is left to be told that stderr is gone.
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Writes a result to stdout.
///
/// # Errors
///
/// What the operating system says; a reader that has seen enough (`| head`) included.
pub(crate) fn result(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Writes a listing to stdout; a reader that has seen enough is fine.
///
/// # Errors
///
/// What the operating system says.
pub(crate) fn listing(text: &str) -> io::Result<()> {
    result(text).or_else(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(()),
        _ => Err(error),
    })
}
