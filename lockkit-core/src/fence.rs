//! Fencing tokens.

use std::fmt;

/// A fencing token: a number that strictly rises with every exclusive grant of one name.
///
/// A lease alone cannot keep a paused process from writing late; a store that remembers the
/// highest token it has seen, and refuses lower ones, can (Kleppmann, *How to do distributed
/// locking*, 2016). Tokens rise across clean release, expiry, crash and server restart; gaps are
/// normal.
///
/// # Examples
///
/// ```
/// use lockkit_core::Fence;
///
/// let (earlier, later) = (Fence::new(7), Fence::new(9));
/// assert!(later > earlier);
/// // The guarded write: UPDATE account SET …, fence = 9 WHERE id = 1 AND fence <= 9
/// assert_eq!(later.get(), 9);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(u64);

impl Fence {
    /// Wraps a number that a backend has issued.
    #[must_use]
    pub const fn new(token: u64) -> Self {
        Self(token)
    }

    /// The number, as it goes into the guarded store.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
