//! Who holds it, for people.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::{Error, ErrorKind};

/// Tells people who holds or waits: a free text beside the host and process id.
///
/// It has no meaning to any algorithm; identity is the [`AttemptId`](crate::AttemptId).
///
/// Cheap to clone: it travels with each claim.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Label(Arc<Parts>);

#[derive(Debug, PartialEq, Eq, Hash)]
struct Parts {
    text: Box<str>,
    host: Arc<str>,
    pid: u32,
}

impl Label {
    /// The longest text, in bytes.
    pub const MAX_BYTES: usize = 200;

    /// A label of this process, with `text` in front; empty text is fine.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] if the text is longer than [`MAX_BYTES`](Self::MAX_BYTES).
    pub fn new(text: impl Into<Box<str>>) -> Result<Self, Error> {
        let text = text.into();
        if text.len() > Self::MAX_BYTES {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "a label of {} bytes is too long; shorten it to {} bytes",
                    text.len(),
                    Self::MAX_BYTES
                ),
            ));
        }
        Ok(Self::of(text))
    }

    /// A label of this process without a text.
    #[must_use]
    pub fn process() -> Self {
        Self::of("".into())
    }

    fn of(text: Box<str>) -> Self {
        Self(Arc::new(Parts {
            text,
            host: host(),
            pid: std::process::id(),
        }))
    }

    /// The free text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// The host name of the process.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.0.host
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.0.pid
    }

    /// One line for a backend to store: `<pid>@<host> <text>`.
    #[must_use]
    pub fn encode(&self) -> String {
        format!("{}@{} {}", self.pid(), self.host(), self.text())
    }

    /// Reads [`encode`](Self::encode) back; a foreign text becomes the text of a label without
    /// host and pid, because a label is never worth an error.
    #[must_use]
    pub fn decode(line: &str) -> Self {
        let parse = || {
            let (pid, rest) = line.split_once('@')?;
            let (host, text) = rest.split_once(' ')?;
            Some(Parts {
                text: text.into(),
                host: host.into(),
                pid: pid.parse().ok()?,
            })
        };
        let foreign = || Parts {
            text: line.into(),
            host: "".into(),
            pid: 0,
        };
        Self(Arc::new(parse().unwrap_or_else(foreign)))
    }
}

impl fmt::Display for Label {
    /// Writes `text (host:pid)` or `host:pid`, control characters escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: String = self
            .text()
            .chars()
            .map(|c| {
                if c.is_control() {
                    char::REPLACEMENT_CHARACTER
                } else {
                    c
                }
            })
            .collect();
        if text.is_empty() {
            write!(f, "{}:{}", self.host(), self.pid())
        } else {
            write!(f, "{text} ({}:{})", self.host(), self.pid())
        }
    }
}

/// The name of this machine, asked for once: labels are made for each claim.
fn host() -> Arc<str> {
    static HOST: OnceLock<Arc<str>> = OnceLock::new();
    Arc::clone(HOST.get_or_init(|| {
        let name = rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .replace([' ', '@'], "_");
        name.into()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_round_trip_and_foreign_text_is_kept() {
        let label = Label::new("nightly report @ 3").unwrap();
        assert_eq!(Label::decode(&label.encode()), label);
        assert_eq!(Label::decode("something else").text(), "something else");
        assert!(Label::new("x".repeat(201)).is_err());
    }
}
