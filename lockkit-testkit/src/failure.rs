//! Why a case failed.

use std::error::Error as StdError;
use std::fmt;
use std::panic::Location;

/// What a case ends with.
pub type Outcome<T = ()> = Result<T, Failure>;

/// Why a case failed: a sentence, and the line of the case that says so.
///
/// Any error turns into one with `?`. It is not an [`Error`](StdError) itself for that reason.
///
/// # Examples
///
/// ```
/// use lockkit_testkit::{Failure, Outcome};
///
/// fn case() -> Outcome {
///     let found: u32 = "7".parse()?;
///     if found != 7 {
///         return Err(Failure::new(format!("found {found} instead of 7")));
///     }
///     Ok(())
/// }
/// assert!(case().is_ok());
/// ```
pub struct Failure {
    message: String,
    at: &'static Location<'static>,
}

impl Failure {
    /// A failure at the caller's line.
    #[must_use]
    #[track_caller]
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            at: Location::caller(),
        }
    }
}

impl<E: StdError> From<E> for Failure {
    #[track_caller]
    fn from(error: E) -> Self {
        Self::new(error.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} (at {}:{})",
            self.message,
            self.at.file(),
            self.at.line()
        )
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Ends the case with a failure unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::Failure::new(format!($($message)+)));
        }
    };
}
pub(crate) use ensure;
