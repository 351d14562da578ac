//! Who asked: the identity of one acquire call, and the id of what it holds.

use std::fmt;
use std::str::FromStr;

use crate::{Error, ErrorKind, LockName, Resource};

/// The identity of one acquire call: 128 random bits, fresh for each.
///
/// It travels with every request, so a retry is recognised and never acquires twice, and a late
/// release never frees what somebody else holds. Whoever knows it can release the hold, so treat
/// it as a capability.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptId([u8; 16]);

impl AttemptId {
    /// Draws a new id.
    #[must_use]
    pub fn random() -> Self {
        Self(rand::random::<u128>().to_be_bytes())
    }

    /// The bytes that a backend stores.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Reads the bytes back; `None` if there are not 16 of them.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for AttemptId {
    /// Shows the first four bytes only: enough to tell two apart, too little to release with.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, ..] = self.0;
        write!(f, "{a:02x}{b:02x}{c:02x}{d:02x}…")
    }
}

/// The id of a hold, or of a place in line: which resource, and which acquire call.
///
/// Prints as one word without blanks or quotes and parses back, so that a shell script can keep
/// it in a variable and another process can renew or release with it.
///
/// # Examples
///
/// ```
/// use lockkit_core::HoldId;
///
/// let id: HoldId = "mutex/orders%2F42.000102030405060708090a0b0c0d0e0f".parse()?;
/// assert_eq!(id.resource().name().as_str(), "orders/42");
/// assert_eq!(id.to_string(), "mutex/orders%2F42.000102030405060708090a0b0c0d0e0f");
/// # Ok::<(), lockkit_core::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct HoldId {
    resource: Resource,
    attempt: AttemptId,
}

impl HoldId {
    /// Joins a resource and the call that holds it.
    #[must_use]
    pub const fn new(resource: Resource, attempt: AttemptId) -> Self {
        Self { resource, attempt }
    }

    /// What is held.
    #[must_use]
    pub const fn resource(&self) -> &Resource {
        &self.resource
    }

    /// Which acquire call holds it.
    #[must_use]
    pub const fn attempt(&self) -> AttemptId {
        self.attempt
    }
}

impl fmt::Display for HoldId {
    /// Writes the whole id, which is a capability: print it only to who may release the hold.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.resource.key(), self.attempt)
    }
}

impl fmt::Debug for HoldId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HoldId({} {:?})", self.resource, self.attempt)
    }
}

impl FromStr for HoldId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let parse = || {
            let (resource, attempt) = text.split_once('.')?;
            let (primitive, name) = resource.split_once('/')?;
            let well_formed = attempt.len() == 32
                && attempt
                    .bytes()
                    .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
            let attempt = u128::from_str_radix(attempt, 16)
                .ok()
                .filter(|_| well_formed)?;
            let name = LockName::decode(name).ok()?;
            let resource = Resource::new(primitive.parse().ok()?, name);
            Some(Self::new(resource, AttemptId(attempt.to_be_bytes())))
        };
        parse().ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidArgument,
                "not a hold id; give the whole text that `acquire` printed, \
                 <kind>/<name>.<32 hex digits>",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Primitive;
    use proptest::prelude::*;

    #[test]
    fn what_is_not_an_id_is_refused_with_the_cure() {
        let full = "mutex/a.000102030405060708090a0b0c0d0e0f";
        assert!(full.parse::<HoldId>().is_ok());
        for bad in [
            "",
            "a",
            "mutex/a",
            "mutex/a.",
            &full[..39],
            "mutex/a.+00102030405060708090a0b0c0d0e0f",
        ] {
            let error = bad.parse::<HoldId>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{bad}");
        }
        assert!(
            full.to_uppercase().parse::<HoldId>().is_err(),
            "one id has one spelling"
        );
    }

    #[test]
    fn debug_does_not_show_the_capability() {
        let id = HoldId::new(
            Resource::new(Primitive::Mutex, LockName::new("a").unwrap()),
            AttemptId([7; 16]),
        );
        assert!(!format!("{id:?}").contains(&id.attempt().to_string()));
    }

    proptest! {
        #[test]
        fn ids_round_trip(name in "\\PC{1,60}", attempt in any::<[u8; 16]>()) {
            let Ok(name) = LockName::new(name) else { return Ok(()) };
            let id = HoldId::new(Resource::new(Primitive::Mutex, name), AttemptId(attempt));
            prop_assert_eq!(id.to_string().parse::<HoldId>().unwrap(), id);
        }
    }
}
