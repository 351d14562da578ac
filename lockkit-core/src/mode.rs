//! How something is held, and who may go first.

use std::fmt;

use crate::{Error, ErrorKind, Result};

/// How a claim wants to hold its resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// Alone.
    Exclusive,
    /// Together with other shared holds. On a latch: to pass once it is open.
    Shared,
    /// `count` of the `limit` permits of a semaphore.
    Permits {
        /// How many permits this claim takes; at least 1.
        count: u32,
        /// How many there are in all; the same for every claim of the name.
        limit: u32,
    },
    /// One of the `of` segments of a segmented lock.
    Segment {
        /// Which one.
        pick: Pick,
        /// How many there are; the same for every claim of the name.
        of: u32,
    },
}

/// Which segment a claim wants. What is held is always one: [`Pick::Only`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pick {
    /// Whichever is free; the first free one from `prefer` on, and then from 0.
    Any {
        /// Where to begin to look.
        prefer: u32,
    },
    /// This one, counted from 0.
    Only(u32),
}

impl Mode {
    /// The number that is stored with the name and has to be the same for every claim: the
    /// permits of a semaphore, the segments of a segmented lock.
    #[must_use]
    pub const fn size(self) -> Option<u32> {
        match self {
            Self::Exclusive | Self::Shared => None,
            Self::Permits { limit, .. } => Some(limit),
            Self::Segment { of, .. } => Some(of),
        }
    }

    /// The same claim for another [`size`](Self::size).
    #[must_use]
    pub const fn resized(self, size: u32) -> Self {
        match self {
            Self::Exclusive | Self::Shared => self,
            Self::Permits { count, .. } => Self::Permits { count, limit: size },
            Self::Segment { pick, .. } => Self::Segment { pick, of: size },
        }
    }

    /// Which segment is held; `None` unless it is one.
    #[must_use]
    pub const fn segment(self) -> Option<u32> {
        match self {
            Self::Segment {
                pick: Pick::Only(segment),
                ..
            } => Some(segment),
            _ => None,
        }
    }

    /// Checks a newcomer against the size stored with its name.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ConfigMismatch`], naming both sizes.
    pub fn check_size(self, stored: u32) -> Result<()> {
        match self.size() {
            Some(size) if size != stored => {
                let message = format!(
                    "this name has {stored}, not {size}; use the same number everywhere, or change \
                     it on purpose with `set_limit` or `set_segments`"
                );
                Err(Error::new(ErrorKind::ConfigMismatch, message)
                    .with("stored", stored)
                    .with("asked", size))
            }
            _ => Ok(()),
        }
    }

    /// Checks a claim in line after the permits were made fewer.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ConfigMismatch`] if it asks for more permits than there are now.
    pub fn check_fits(self, stored: u32) -> Result<()> {
        match self {
            Self::Permits { count, .. } if count > stored => {
                let message = format!(
                    "{count} permits were asked for, and the limit was lowered to {stored}; ask \
                     for fewer"
                );
                Err(Error::new(ErrorKind::ConfigMismatch, message))
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exclusive => f.write_str("exclusive"),
            Self::Shared => f.write_str("shared"),
            Self::Permits { count, limit } => write!(f, "{count} of {limit}"),
            Self::Segment { pick, of } => match pick {
                Pick::Any { .. } => write!(f, "any of {of}"),
                Pick::Only(segment) => write!(f, "segment {segment} of {of}"),
            },
        }
    }
}

/// Whether a newcomer may pass those who wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Order {
    /// A newcomer may take what is free at that moment even if others wait. Fastest, because
    /// nobody has to wake up first. Whoever is first in line is passed over once at most: the
    /// next release hands over to it.
    #[default]
    Barging,
    /// Strictly first come, first served.
    Fair,
}
