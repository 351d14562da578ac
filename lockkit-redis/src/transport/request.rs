//! What travels to a server and back, in words of our own: only the driver names the client library.

use redis::Cmd;

/// How long a word is, more or less.
const WORD: usize = 40;

/// One command.
#[derive(Clone)]
pub(crate) struct Request(pub(super) Cmd);

impl Request {
    /// A command without arguments yet; `CONFIG GET` and the like are two words.
    pub(crate) fn new(words: &str) -> Self {
        let mut cmd = Cmd::new();
        for word in words.split(' ') {
            cmd.arg(word);
        }
        Self(cmd)
    }

    /// A command to come, of so many words.
    pub(crate) fn with_capacity(words: usize) -> Self {
        Self(Cmd::with_capacity(words, words * WORD))
    }

    /// With another argument, of any bytes.
    #[must_use]
    pub(crate) fn arg(mut self, arg: impl AsRef<[u8]>) -> Self {
        self.0.arg(arg.as_ref());
        self
    }

    /// With a number in decimal.
    #[must_use]
    pub(crate) fn number(mut self, number: usize) -> Self {
        self.0.arg(number);
        self
    }

    /// With several more.
    #[must_use]
    pub(crate) fn args<A: AsRef<[u8]>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        for arg in args {
            self.0.arg(arg.as_ref());
        }
        self
    }
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Nil,
    Int(i64),
    Bytes(Vec<u8>),
    /// An array, a set, or a map as keys and values in turn.
    Array(Vec<Self>),
}

impl Reply {
    pub(crate) const fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            _ => None,
        }
    }

    pub(crate) fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        str::from_utf8(self.as_bytes()?).ok()
    }

    pub(crate) fn as_array(&self) -> Option<&[Self]> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The value of a text key in a map.
    pub(crate) fn field(&self, key: &str) -> Option<&Self> {
        let pairs = self.as_array()?.chunks_exact(2);
        let mut found = pairs.filter(|pair| pair[0].as_text() == Some(key));
        found.next().map(|pair| &pair[1])
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The server refused: its error code (`NOSCRIPT`, `OOM`, …) and the rest of its line.
    Refused { code: String, detail: String },
    /// The connection ended, or was never made. The request may have taken effect.
    Broken(String),
    /// No answer within this many milliseconds. The request may have taken effect.
    Silent(u64),
}

impl Failure {
    /// Whether the server refused with this code.
    pub(crate) fn is(&self, wanted: &str) -> bool {
        matches!(self, Self::Refused { code, .. } if code == wanted)
    }
}

/// What a server says unasked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Push {
    /// A message to a channel that this connection subscribed to.
    Message(Vec<u8>),
    /// The server ended a subscription by itself: a slot has moved to another node.
    Unsubscribed,
    /// The connection has ended.
    Disconnected,
}
