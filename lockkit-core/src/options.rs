//! Defaults and limits of a locker.

use std::time::Duration;

use crate::{Descriptor, Error, ErrorKind, Result};

/// Defaults and limits of a [`Locker`](crate::Locker).
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use lockkit_core::LockerOptions;
///
/// let mut options = LockerOptions::default();
/// options.ttl = Duration::from_secs(10);
/// options.label = "billing".into();
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockerOptions {
    /// The lease that a lock asks for unless it says otherwise; 30 s. A shorter lease frees the
    /// locks of a stopped process sooner and is lost sooner in an outage.
    pub ttl: Duration,
    /// How long one request to the backend may take at most; 10 s. It may be given up an eighth
    /// earlier. Waiting for somebody else's lock is not bounded by it.
    pub call_timeout: Duration,
    /// How many locks may be held at once; 1,000,000.
    pub max_holds: usize,
    /// How many claims may wait at once; 100,000.
    pub max_waiters: usize,
    /// A text that shows people who holds a lock, beside host and process id; empty.
    pub label: String,
    /// Whether metrics carry the name of the lock as a label; `false`. Each name becomes a time
    /// series of its own, so turn it on only where names are few. See
    /// [`observability`](crate::observability).
    pub names_in_metrics: bool,
}

impl Default for LockerOptions {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(30),
            call_timeout: Duration::from_secs(10),
            max_holds: 1_000_000,
            max_waiters: 100_000,
            label: String::new(),
            names_in_metrics: false,
        }
    }
}

impl LockerOptions {
    pub(crate) fn check(&self, descriptor: &Descriptor) -> Result<()> {
        descriptor.check_ttl(self.ttl)?;
        if self.call_timeout.is_zero() {
            let message = "`call_timeout` is zero; give requests some time, such as 10s";
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        Ok(())
    }
}
