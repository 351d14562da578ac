//! What is locked: a name of one kind of primitive.

use std::fmt;
use std::str::FromStr;

use crate::LockName;

/// A kind of primitive. The kind is part of the key, so a mutex and a semaphore of one name have
/// nothing to do with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Primitive {
    /// One holder at a time.
    Mutex,
    /// Many readers or one writer.
    ReadWrite,
    /// n of m permits.
    Semaphore,
    /// A count that opens at zero.
    Latch,
    /// One resource in n segments.
    Segmented,
}

impl Primitive {
    /// Every primitive, in the order in which tables list them.
    pub const ALL: [Self; 5] = [
        Self::Mutex,
        Self::ReadWrite,
        Self::Semaphore,
        Self::Latch,
        Self::Segmented,
    ];

    /// The word used in keys, ids, logs and tables.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mutex => "mutex",
            Self::ReadWrite => "rw",
            Self::Semaphore => "semaphore",
            Self::Latch => "latch",
            Self::Segmented => "segmented",
        }
    }
}

impl fmt::Display for Primitive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Primitive {
    type Err = ();

    fn from_str(s: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|p| p.as_str() == s).ok_or(())
    }
}

/// A primitive of one name: the thing that is held.
///
/// # Examples
///
/// ```
/// use lockkit_core::{LockName, Primitive, Resource};
///
/// let orders = Resource::new(Primitive::Mutex, LockName::new("orders/42")?);
/// assert_eq!(orders.key(), "mutex/orders%2F42.");
/// assert_eq!(Resource::from_key("mutex/orders%2F42."), Some(orders));
/// # Ok::<(), lockkit_core::NameError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource {
    primitive: Primitive,
    name: LockName,
}

impl Resource {
    /// Joins a kind and a name.
    #[must_use]
    pub const fn new(primitive: Primitive, name: LockName) -> Self {
        Self { primitive, name }
    }

    /// The kind of primitive.
    #[must_use]
    pub const fn primitive(&self) -> Primitive {
        self.primitive
    }

    /// The name.
    #[must_use]
    pub const fn name(&self) -> &LockName {
        &self.name
    }

    /// The key under which every backend stores this resource: `<kind>/<encoded name>.`
    ///
    /// Injective, and prefix-free: the closing dot never occurs in an encoded name, so no key
    /// begins another, and `a` never meets `a/b`.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}/{}.", self.primitive, self.name.encoded())
    }

    /// Reads [`key`](Self::key) back; `None` if something else stands there.
    #[must_use]
    pub fn from_key(key: &str) -> Option<Self> {
        let (primitive, name) = key.strip_suffix('.')?.split_once('/')?;
        Some(Self::new(
            primitive.parse().ok()?,
            LockName::decode(name).ok()?,
        ))
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.primitive, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_key_is_a_prefix_of_another(a in "\\PC{1,40}", b in "\\PC{1,40}", i in 0usize..5, j in 0usize..5) {
            let (Ok(a), Ok(b)) = (LockName::new(a), LockName::new(b)) else { return Ok(()) };
            let a = Resource::new(Primitive::ALL[i], a);
            let b = Resource::new(Primitive::ALL[j], b);
            prop_assert_eq!(a == b, a.key() == b.key());
            prop_assert!(a == b || !a.key().starts_with(&b.key()));
            prop_assert_eq!(Resource::from_key(&a.key()), Some(a));
        }
    }
}
