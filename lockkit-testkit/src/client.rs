//! A client of the service of a case.

use std::ops::Deref;

use lockkit_core::Locker;

use crate::Wire;

/// A client of the service of a case: a [`Locker`] with a [`Wire`] under it.
#[derive(Clone, Debug)]
pub struct Client {
    locker: Locker,
    wire: Wire,
}

impl Client {
    pub(crate) const fn new(locker: Locker, wire: Wire) -> Self {
        Self { locker, wire }
    }

    /// What its requests travel on.
    #[must_use]
    pub const fn wire(&self) -> &Wire {
        &self.wire
    }
}

impl Deref for Client {
    type Target = Locker;

    fn deref(&self) -> &Locker {
        &self.locker
    }
}
