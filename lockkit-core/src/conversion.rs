//! From writer to reader, and back.

use crate::part::Part;
use crate::{ErrorKind, Guard, Mode, Primitive, Result};

/// What a reader that wanted to write has become. See [`Guard::try_upgrade`].
#[derive(Debug)]
#[must_use = "dropping it releases the lock"]
pub enum Upgraded {
    /// A writer, with a new fence.
    Writer(Guard),
    /// The reader that it was: others read as well, or somebody waits.
    Reader(Guard),
}

impl Guard {
    /// Turns a writer into a reader in one step: nobody writes in between, and the readers that
    /// come next in line enter at once. Keeps the fence.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] if this is not a guard of a
    /// [`ReadWriteLock`](crate::ReadWriteLock), or the owner holds other guards of it;
    /// [`ErrorKind::Lost`] if the lock was lost before; [`ErrorKind::Unavailable`] if the service
    /// did not confirm. After an error the lock is released.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future releases the lock.
    pub async fn downgrade(self) -> Result<Self> {
        let mut part = self.half_of_read_write()?;
        if part.hold.mode() == Mode::Shared || part.convert(Mode::Shared).await? {
            return Ok(Self::new(part));
        }
        let message = "the backend would not let a writer become a reader";
        Err(part.core.error(ErrorKind::Unexpected, message))
    }

    /// Turns a reader into a writer in one step, if nobody else reads and nobody waits: otherwise
    /// it stays the reader that it was. Never waits, because two readers that each waited for the
    /// other to stop would wait for ever: to write at last, unlock and lock anew.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] if this is not a guard of a
    /// [`ReadWriteLock`](crate::ReadWriteLock); [`ErrorKind::Lost`] if the lock was lost before;
    /// [`ErrorKind::Unavailable`] if the service did not confirm. After an error the lock is
    /// released, unless the owner holds other guards of it: those go on as readers, and others may
    /// be kept out until they are dropped, because nobody knows whether the lock was upgraded.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future releases the lock.
    pub async fn try_upgrade(self) -> Result<Upgraded> {
        let mut part = self.half_of_read_write()?;
        let writes = part.hold.mode() == Mode::Exclusive || part.convert(Mode::Exclusive).await?;
        let guard = Self::new(part);
        Ok(if writes {
            Upgraded::Writer(guard)
        } else {
            Upgraded::Reader(guard)
        })
    }

    fn half_of_read_write(self) -> Result<Part> {
        let part = self.single("converted")?;
        if part.hold.id.resource().primitive() == Primitive::ReadWrite {
            return Ok(part);
        }
        let message = "only a read-write lock is downgraded or upgraded";
        Err(part.core.error(ErrorKind::InvalidArgument, message))
    }
}
