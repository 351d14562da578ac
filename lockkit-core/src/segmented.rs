//! One resource as n segments.

use std::hash::Hasher as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use siphasher::sip::SipHasher13;

use crate::core::Core;
use crate::terms::{Terms, choices, debug_terms};
use crate::{ErrorKind, Guard, Mode, Order, Pick, Primitive, Result};

/// A resource in n segments, each of which one holder has at a time: any free one, or the one of a
/// key.
///
/// Made by [`Locker::segmented`](crate::Locker::segmented). For a pool of equal things, such as
/// workers or test databases, take [any](Self::lock_any) and read which one from
/// [`Guard::segment`]. For many things that share few locks, take that of a
/// [key](Self::lock_key): keys of one segment exclude each other, others mostly do not.
///
/// Each segment goes to the first in line who wants it. The number of segments is stored with the
/// name; another number is an error, [`ErrorKind::ConfigMismatch`], because one key would belong to
/// two segments.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> lockkit_core::Result<()> {
/// use lockkit_core::{Locker, Memory};
///
/// let locker = Locker::new(Memory::new())?;
/// let databases = locker.segmented("test-databases", 2);
/// let (one, other) = (databases.lock_any().await?, databases.lock_any().await?);
/// assert_ne!(one.segment(), other.segment());
/// assert!(databases.try_lock_any().await?.is_none());
///
/// let accounts = locker.segmented("accounts", 64);
/// let guard = accounts.lock_key("alice").await?;
/// assert_eq!(guard.segment(), Some(accounts.segment_of("alice")));
/// # drop((one, other, guard));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a lock does nothing until it is taken"]
pub struct SegmentedLock {
    terms: Terms,
    of: u32,
    /// The segment held last, by any clone: what was prepared for it may still be there.
    last: Arc<AtomicU32>,
}

debug_terms!(SegmentedLock);

impl SegmentedLock {
    pub(crate) fn new(core: &Arc<Core>, name: impl AsRef<str>, of: u32) -> Self {
        Self {
            terms: Terms::new(core, Primitive::Segmented, name, Order::Fair),
            of,
            last: Arc::default(),
        }
    }

    choices!(lease);
    choices!(resource);
    choices!(wait);

    /// How many segments there are.
    #[must_use]
    pub const fn segments(&self) -> u32 {
        self.of
    }

    /// The segment of a key: SipHash-1-3 of its bytes with a key of zeros, modulo the number of
    /// segments. The same on every machine, in every version, and on every backend.
    ///
    /// With 0 segments, which cannot be locked, it is 0.
    #[must_use]
    pub fn segment_of(&self, key: impl AsRef<[u8]>) -> u32 {
        let mut hasher = SipHasher13::new();
        hasher.write(key.as_ref());
        let segment = hasher.finish() % u64::from(self.of.max(1));
        u32::try_from(segment).unwrap_or(0) // Below `of`, which is a `u32`.
    }

    /// Waits until a segment is ours, whichever: the one held last if it is free.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Timeout`] if [`wait`](Self::wait) ran out; [`ErrorKind::InvalidName`],
    /// [`ErrorKind::InvalidArgument`] or [`ErrorKind::Unsupported`] before any I/O;
    /// [`ErrorKind::ConfigMismatch`] if the name has another number of segments;
    /// [`ErrorKind::Unavailable`] if the backend has not answered for a lease;
    /// [`ErrorKind::Closed`] once the locker is.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future at any point loses the place in line and leaves nothing behind.
    pub async fn lock_any(&self) -> Result<Guard> {
        self.lock(self.any()).await
    }

    /// Takes a segment if one is free; `None` if all are held, or wanted by those who wait.
    ///
    /// # Errors
    ///
    /// As [`lock_any`](Self::lock_any), except that it never waits and so never times out.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future at any point leaves nothing behind.
    pub async fn try_lock_any(&self) -> Result<Option<Guard>> {
        self.try_lock(self.any()).await
    }

    /// Waits until the [segment of this key](Self::segment_of) is ours.
    ///
    /// # Errors
    ///
    /// As [`lock_any`](Self::lock_any).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future at any point loses the place in line and leaves nothing behind.
    pub async fn lock_key(&self, key: impl AsRef<[u8]> + Send) -> Result<Guard> {
        self.lock(Pick::Only(self.segment_of(key))).await
    }

    /// Takes the [segment of this key](Self::segment_of) if it is free.
    ///
    /// # Errors
    ///
    /// As [`lock_any`](Self::lock_any), except that it never waits and so never times out.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future at any point leaves nothing behind.
    pub async fn try_lock_key(&self, key: impl AsRef<[u8]> + Send) -> Result<Option<Guard>> {
        self.try_lock(Pick::Only(self.segment_of(key))).await
    }

    /// Waits until this segment is ours.
    ///
    /// # Errors
    ///
    /// As [`lock_any`](Self::lock_any); [`ErrorKind::InvalidArgument`] if there is no such segment.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future at any point loses the place in line and leaves nothing behind.
    pub async fn lock_segment(&self, segment: u32) -> Result<Guard> {
        self.lock(Pick::Only(segment)).await
    }

    /// Takes this segment if it is free.
    ///
    /// # Errors
    ///
    /// As [`lock_segment`](Self::lock_segment), except that it never times out.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future at any point leaves nothing behind.
    pub async fn try_lock_segment(&self, segment: u32) -> Result<Option<Guard>> {
        self.try_lock(Pick::Only(segment)).await
    }

    /// Changes the number of segments that is stored with the name, while nobody holds or waits for
    /// any, and gives back the lock with it; `None`, and no change, otherwise: the keys would
    /// belong to other segments in the middle of work on them.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] for 0 segments; [`ErrorKind::Unavailable`] if the backend did
    /// not confirm, in which case it may have been changed.
    ///
    /// # Cancel safety
    ///
    /// The number may or may not have been changed.
    pub async fn set_segments(&self, of: u32) -> Result<Option<Self>> {
        let changed = Self { of, ..self.clone() };
        changed.mode(Pick::Only(0))?;
        let resource = self.terms.resource()?;
        let core = &self.terms.core;
        core.check_not_closed()?;
        let done = core.bounded(core.backend.set_size(&resource, of)).await?;
        Ok(done.then_some(changed))
    }

    async fn lock(&self, pick: Pick) -> Result<Guard> {
        let guard = self.terms.lock(self.mode(pick)?).await?;
        self.remember(&guard);
        Ok(guard)
    }

    async fn try_lock(&self, pick: Pick) -> Result<Option<Guard>> {
        let guard = self.terms.try_lock(self.mode(pick)?).await?;
        if let Some(guard) = &guard {
            self.remember(guard);
        }
        Ok(guard)
    }

    fn any(&self) -> Pick {
        Pick::Any {
            prefer: self.last.load(Relaxed),
        }
    }

    fn remember(&self, guard: &Guard) {
        if let Some(segment) = guard.segment() {
            self.last.store(segment, Relaxed);
        }
    }

    fn mode(&self, pick: Pick) -> Result<Mode> {
        let message = match pick {
            _ if self.of == 0 => "a lock in 0 segments cannot be taken; use 1 or more".into(),
            Pick::Only(segment) if segment >= self.of => {
                let last = self.of - 1;
                format!("there is no segment {segment}; they are counted from 0 to {last}")
            }
            _ => return Ok(Mode::Segment { pick, of: self.of }),
        };
        Err(self.terms.core.error(ErrorKind::InvalidArgument, message))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Locker, Memory};

    #[tokio::test]
    async fn the_segment_of_a_key_never_changes() {
        let locker = Locker::new(Memory::new()).unwrap();
        let lock = locker.segmented("a", 1 << 16);
        let segments = ["", "alice", "bob", "orders/42"].map(|key| lock.segment_of(key));
        assert_eq!(segments, [21292, 54849, 40234, 30826]);
        assert_eq!(locker.segmented("a", 0).segment_of("alice"), 0);
    }
}
