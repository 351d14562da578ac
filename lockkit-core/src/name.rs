//! The one name type that every backend shares.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::{Error, ErrorKind};

/// What stays as it is in an encoded name; every other byte becomes `%XX`.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'_').remove(b'-');

/// The name of a lock: 1 to 200 bytes of UTF-8, case-sensitive, compared byte by byte.
///
/// Any text in that range is a valid name, control characters and slashes included; `é` in its
/// composed and its decomposed form are two names. Every backend stores
/// [`encoded`](Self::encoded), which is injective, so switching the backend never changes which
/// names are equal.
///
/// # Examples
///
/// ```
/// use lockkit_core::LockName;
///
/// let name: LockName = "orders/42".parse()?;
/// assert_eq!(name.as_str(), "orders/42");
/// assert_eq!(name.encoded(), "orders%2F42");
/// assert!("".parse::<LockName>().is_err());
/// # Ok::<(), lockkit_core::NameError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockName(Arc<str>);

impl LockName {
    /// The longest name, in bytes.
    pub const MAX_BYTES: usize = 200;

    /// Checks `name` and keeps it.
    ///
    /// # Errors
    ///
    /// [`NameError`] if the name is empty or longer than [`MAX_BYTES`](Self::MAX_BYTES).
    pub fn new(name: impl AsRef<str>) -> Result<Self, NameError> {
        let name = name.as_ref();
        match name.len() {
            0 => Err(NameError::Empty),
            len if len > Self::MAX_BYTES => Err(NameError::TooLong { len }),
            _ => Ok(Self(name.into())),
        }
    }

    /// The name as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The form that reaches a server: `[A-Za-z0-9_-]` stay, every other byte is `%XX`.
    ///
    /// Injective, 1 to 600 bytes of ASCII, free of `.`, `/`, `:`, `{`, `*` and blanks.
    #[must_use]
    pub fn encoded(&self) -> String {
        utf8_percent_encode(&self.0, KEPT).to_string()
    }

    /// Reads [`encoded`](Self::encoded) back.
    ///
    /// # Errors
    ///
    /// [`NameError::Encoding`] if `text` is not what `encoded` would have written.
    pub fn decode(text: &str) -> Result<Self, NameError> {
        let decoded = percent_decode_str(text)
            .decode_utf8()
            .map_err(|_| NameError::Encoding)?;
        let name = Self::new(decoded)?;
        // One name has one encoding: `%41` for `A` would make two keys of one name.
        if name.encoded() == text {
            Ok(name)
        } else {
            Err(NameError::Encoding)
        }
    }
}

impl fmt::Display for LockName {
    /// Writes the name with control characters escaped, so that a log line stays one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            if c.is_control() {
                write!(f, "{}", c.escape_default())?
            } else {
                write!(f, "{c}")?
            }
        }
        Ok(())
    }
}

impl fmt::Debug for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl FromStr for LockName {
    type Err = NameError;

    fn from_str(s: &str) -> Result<Self, NameError> {
        Self::new(s)
    }
}

/// Why a text is not a [`LockName`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The text is empty.
    #[error("a lock name must not be empty; give 1 to {max} bytes", max = LockName::MAX_BYTES)]
    Empty,
    /// The text is too long.
    #[error(
        "a lock name of {len} bytes is too long; shorten it to {max} bytes",
        max = LockName::MAX_BYTES
    )]
    TooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// An encoded name is not in the form that [`LockName::encoded`] writes.
    #[error("not an encoded lock name; copy the whole id as it was printed")]
    Encoding,
}

impl From<NameError> for Error {
    fn from(error: NameError) -> Self {
        Self::new(ErrorKind::InvalidName, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn length_is_counted_in_bytes_before_any_encoding() {
        assert_eq!(LockName::new(""), Err(NameError::Empty));
        assert!(LockName::new("x".repeat(200)).is_ok());
        assert_eq!(
            LockName::new("é".repeat(101)),
            Err(NameError::TooLong { len: 202 })
        );
        assert_eq!(LockName::new("/".repeat(200)).unwrap().encoded().len(), 600);
    }

    #[test]
    fn nasty_names_stay_apart() {
        let nasty = [
            ".",
            "..",
            "/",
            "a",
            "a/",
            "a/b",
            "A",
            "a ",
            " a",
            "\0",
            "\u{7f}",
            "a%2Fb",
            "😀",
            "{a}",
            "*",
            "?",
            "[a]",
            "x'; drop table lk; --",
            "\r\nFLUSHALL\r\n",
            "e\u{301}",
            "é",
        ];
        let keys: std::collections::HashSet<_> = nasty
            .iter()
            .map(|n| LockName::new(n).unwrap().encoded())
            .collect();
        assert_eq!(keys.len(), nasty.len());
    }

    #[test]
    fn display_escapes_control_characters() {
        assert_eq!(
            LockName::new("a\nb\u{1}").unwrap().to_string(),
            "a\\nb\\u{1}"
        );
    }

    #[test]
    fn a_second_encoding_of_a_name_is_refused() {
        assert_eq!(LockName::decode("%41"), Err(NameError::Encoding));
        assert_eq!(LockName::decode("%2f"), Err(NameError::Encoding));
        assert_eq!(LockName::decode("%ff"), Err(NameError::Encoding));
    }

    proptest! {
        #[test]
        fn encoding_round_trips_and_is_injective(a in "\\PC{1,60}|[\\x00-\\x7f]{1,60}", b in "\\PC{1,60}") {
            let (Ok(a), Ok(b)) = (LockName::new(&a), LockName::new(&b)) else { return Ok(()) };
            prop_assert_eq!(&LockName::decode(&a.encoded()).unwrap(), &a);
            prop_assert_eq!(a == b, a.encoded() == b.encoded());
            prop_assert!(a.encoded().bytes().all(|c| c.is_ascii_alphanumeric() || b"_-%".contains(&c)));
        }
    }
}
