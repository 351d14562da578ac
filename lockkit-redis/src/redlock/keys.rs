//! The keys on a node. They begin differently from those of the backend for one server, so both can use
//! one server side by side.

use lockkit_core::{Primitive, Resource};

use crate::key::CRC;

/// How many counters a node keeps at most: names share one, so that what is kept stays bounded. Few share
/// one, because a hold is only given back to a node on which nobody of its bucket was let in since.
const BUCKETS: u16 = 4096;

/// What every key of a deployment begins with.
#[derive(Clone, Debug)]
pub(crate) struct Keys(String);

impl Keys {
    pub(crate) const fn new(prefix: String) -> Self {
        Self(prefix)
    }

    /// The hold of a name.
    pub(crate) fn hold(&self, resource: &Resource) -> String {
        let key = resource.key();
        let [_, low] = CRC.checksum(key.as_bytes()).to_be_bytes();
        format!("{}:{{{low}}}:redlock/{key}", self.0)
    }

    /// What a node knows of itself, and its counters: the field of a bucket is its number.
    pub(crate) fn node(&self) -> String {
        format!("{}:redlock/node", self.0)
    }

    /// What the channel of a client begins with.
    pub(crate) fn inbox(&self) -> String {
        format!("{}:redlock/in:", self.0)
    }

    /// A pattern for all holds.
    pub(crate) fn pattern(&self) -> String {
        format!("{}:{{*}}:redlock/{}/*", self.0, Primitive::Mutex)
    }

    /// The name that a key is about.
    pub(crate) fn resource_of(&self, key: &str) -> Option<Resource> {
        let rest = key.strip_prefix(self.0.as_str())?.strip_prefix(":{")?;
        let (_, rest) = rest.split_once("}:redlock/")?;
        Resource::from_key(rest)
    }
}

/// The bucket whose counter a name uses, as a field of the node's state.
pub(crate) fn bucket(resource: &Resource) -> String {
    let bucket = CRC.checksum(resource.key().as_bytes()) % BUCKETS;
    bucket.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockkit_core::LockName;

    #[test]
    fn keys_lead_back_and_meet_no_others() {
        let resource = Resource::new(Primitive::Mutex, LockName::new("a}b{c:*.").unwrap());
        let keys = Keys::new("lk".into());
        let hold = keys.hold(&resource);
        assert_eq!(keys.resource_of(&hold), Some(resource.clone()));
        assert_eq!(keys.resource_of(&keys.node()), None);
        let other = crate::key::Prefix::new("lk".into());
        assert_ne!(hold, other.keys(&resource).main());
        assert_eq!(other.resource_of(&hold), None);
    }
}
