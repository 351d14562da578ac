//! What a storm is made of.

use std::time::Duration;

use lockkit_core::{Descriptor, Primitive};

/// Which primitive a storm is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Topic {
    Mutex,
    ReadWrite,
    Semaphore,
    Segmented,
    Latch,
    MultiLock,
}

impl Topic {
    pub(super) const ALL: [Self; 6] = [
        Self::Mutex,
        Self::ReadWrite,
        Self::Semaphore,
        Self::Segmented,
        Self::Latch,
        Self::MultiLock,
    ];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Mutex => "mutex",
            Self::ReadWrite => "read_write",
            Self::Semaphore => "semaphore",
            Self::Segmented => "segmented",
            Self::Latch => "latch",
            Self::MultiLock => "multi_lock",
        }
    }

    pub(super) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|topic| topic.as_str() == word)
    }

    /// What a backend has to offer for it.
    pub(super) const fn primitive(self) -> Primitive {
        match self {
            Self::Mutex | Self::MultiLock => Primitive::Mutex,
            Self::ReadWrite => Primitive::ReadWrite,
            Self::Semaphore => Primitive::Semaphore,
            Self::Segmented => Primitive::Segmented,
            Self::Latch => Primitive::Latch,
        }
    }

    /// How many names are fought for.
    pub(super) const fn names(self) -> u32 {
        match self {
            Self::MultiLock => 6,
            _ => 3,
        }
    }

    pub(super) fn name(self, number: u32) -> String {
        format!("{}/{number}", self.as_str())
    }
}

/// The permits of each semaphore, and the segments of each segmented lock.
pub(super) const PERMITS: u32 = 5;
pub(super) const SEGMENTS: u32 = 4;

/// How long a latch is the newest one.
pub(super) const LATCH_AGE: Duration = Duration::from_millis(300);

/// What each latch is set to.
pub(super) const fn count_of_latch(latch: u32) -> u32 {
    2 + latch % 4
}

/// A lease that runs out in the storm if it is not renewed.
pub(super) fn lease(descriptor: &Descriptor) -> Duration {
    (*descriptor.ttl.start()).max(Duration::from_millis(300))
}
