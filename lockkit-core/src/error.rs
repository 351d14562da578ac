//! The error type of every crate.

use std::error::Error as StdError;
use std::fmt;

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, for a program to decide on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A lock name is empty or too long.
    InvalidName,
    /// Another argument is out of range: a lease time, a label, an id.
    InvalidArgument,
    /// A URL, a configuration or the environment is wrong.
    InvalidConfig,
    /// The name is in use with another number of permits or segments.
    ConfigMismatch,
    /// The backend cannot do what was asked; said at construction.
    Unsupported,
    /// The time to wait ran out while somebody else held the lock.
    Timeout,
    /// The hold was lost before.
    Lost,
    /// The backend does not answer, or not in time. Worth a retry.
    Unavailable,
    /// The backend refuses these credentials, or a file its permissions.
    PermissionDenied,
    /// The grant is not on as many replicas as was asked for. It was undone.
    NotReplicated,
    /// The backend has no room left.
    Full,
    /// Too many holds or waiters in this process; nothing was sent.
    Overloaded,
    /// What is stored is damaged, foreign, or of a newer version.
    Corrupt,
    /// The locker was closed.
    Closed,
    /// None of the above: a bug in a backend, or something new.
    Unexpected,
}

impl ErrorKind {
    /// The words that open the message of such an error, and the label in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidName => "invalid name",
            Self::InvalidArgument => "invalid argument",
            Self::InvalidConfig => "invalid configuration",
            Self::ConfigMismatch => "configuration mismatch",
            Self::Unsupported => "unsupported",
            Self::Timeout => "timed out",
            Self::Lost => "lost",
            Self::Unavailable => "unavailable",
            Self::PermissionDenied => "permission denied",
            Self::NotReplicated => "not replicated",
            Self::Full => "backend full",
            Self::Overloaded => "overloaded",
            Self::Corrupt => "corrupt state",
            Self::Closed => "closed",
            Self::Unexpected => "unexpected",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error: its kind, what to do about it, the backend, some context, and its source.
///
/// Prints as one line, `backend: kind: message (key=value, …): source`. It never holds a
/// password: backends put redacted endpoints only into message and context.
///
/// # Examples
///
/// ```
/// use lockkit_core::{Error, ErrorKind};
///
/// let error = Error::new(ErrorKind::Timeout, "somebody else held the lock all the time")
///     .on("sqlite")
///     .with("name", "orders/42");
/// assert_eq!(error.kind(), ErrorKind::Timeout);
/// assert_eq!(
///     error.to_string(),
///     "sqlite: timed out: somebody else held the lock all the time (name=orders/42)",
/// );
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
    backend: Option<&'static str>,
    context: Vec<(&'static str, String)>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error of this kind; `message` says what is wrong and names the cure.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            backend: None,
            context: Vec::new(),
            source: None,
        }))
    }

    /// Names the backend it comes from.
    #[must_use]
    pub fn on(mut self, backend: &'static str) -> Self {
        self.0.backend.get_or_insert(backend);
        self
    }

    /// Adds context: never a secret.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl fmt::Display) -> Self {
        self.0.context.push((key, value.to_string()));
        self
    }

    /// Adds the error underneath.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// What went wrong.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What is wrong and what to do, without kind, context and source.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The backend it comes from, by its driver name.
    #[must_use]
    pub fn backend(&self) -> Option<&'static str> {
        self.0.backend
    }

    /// The context, in the order in which it was added.
    pub fn context(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0
            .context
            .iter()
            .map(|(key, value)| (*key, value.as_str()))
    }

    /// Whether the same call may succeed a little later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.0.kind == ErrorKind::Unavailable
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(backend) = self.0.backend {
            write!(f, "{backend}: ")?;
        }
        write!(f, "{}: {}", self.0.kind, self.0.message)?;
        for (i, (key, value)) in self.0.context.iter().enumerate() {
            write!(f, "{}{key}={value}", if i == 0 { " (" } else { ", " })?;
        }
        if !self.0.context.is_empty() {
            f.write_str(")")?;
        }
        match &self.0.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("message", &self.0.message)
            .field("backend", &self.0.backend)
            .field("context", &self.0.context)
            .field("source", &self.0.source)
            .finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0
            .source
            .as_ref()
            .map(|source| &**source as &(dyn StdError + 'static))
    }
}
