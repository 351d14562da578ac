//! The keys of a resource on the server.

use crc::{CRC_16_XMODEM, Crc};
use lockkit_core::Resource;

/// How names are hashed, by us into buckets and by a cluster into slots.
pub(crate) const CRC: Crc<u16> = Crc::<u16>::new(&CRC_16_XMODEM);

/// How many slots a cluster has.
pub(crate) const SLOTS: u16 = 16_384;

/// A group of names that share a fence counter and, in a cluster, a slot: so there are few counters,
/// and several names can be handled in one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Bucket(u8);

impl Bucket {
    /// The bucket of a resource, by its key.
    fn of(key: &str) -> Self {
        let [_, low] = CRC.checksum(key.as_bytes()).to_be_bytes();
        Self(low)
    }

    /// The slot of a cluster in which its keys are.
    pub(crate) fn slot(self) -> u16 {
        CRC.checksum(self.0.to_string().as_bytes()) % SLOTS
    }

    /// Its place among 256 bits.
    pub(crate) fn bit(self) -> (usize, u64) {
        (usize::from(self.0 / 64), 1 << (self.0 % 64))
    }
}

/// What every key of a deployment begins with.
#[derive(Clone, Debug)]
pub(crate) struct Prefix(String);

impl Prefix {
    pub(crate) const fn new(prefix: String) -> Self {
        Self(prefix)
    }

    /// The keys of a resource.
    pub(crate) fn keys(&self, resource: &Resource) -> Keys {
        let key = resource.key();
        let bucket = Bucket::of(&key);
        let base = [self.0.as_str(), ":{", &bucket.0.to_string(), "}:"].concat();
        Keys { bucket, base, key }
    }

    /// The channel of a client; in a cluster there is one for each bucket.
    pub(crate) fn inbox(&self, bucket: Option<Bucket>, client: &str) -> String {
        match bucket {
            Some(bucket) => format!("{}:{{{}}}:in:{client}", self.0, bucket.0),
            None => format!("{}:in:{client}", self.0),
        }
    }

    /// A pattern for the main keys of all resources of a kind whose name begins so. An encoded
    /// name has no character that means anything in a pattern.
    pub(crate) fn pattern(&self, beginning: &str) -> String {
        format!("{}:{{*}}:{beginning}*", self.0)
    }

    /// The resource that one of its keys belongs to.
    pub(crate) fn resource_of(&self, key: &str) -> Option<Resource> {
        let rest = key.strip_prefix(self.0.as_str())?.strip_prefix(":{")?;
        let (_, rest) = rest.split_once("}:")?;
        let end = rest.find('.')?;
        Resource::from_key(&rest[..=end])
    }
}

/// The keys of one resource.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    pub(crate) bucket: Bucket,
    base: String,
    key: String,
}

impl Keys {
    /// The main key: the hold of a mutex.
    pub(crate) fn main(&self) -> String {
        [self.base.as_str(), &self.key].concat()
    }

    /// The key of the resource, without prefix and bucket.
    pub(crate) fn name(&self) -> &str {
        &self.key
    }

    /// One of the others: the main key and a letter.
    pub(crate) fn part(&self, letter: char) -> String {
        let mut part = String::with_capacity(self.base.len() + self.key.len() + 1);
        part.push_str(&self.base);
        part.push_str(&self.key);
        part.push(letter);
        part
    }

    /// The fence counter of the bucket.
    pub(crate) fn fence(&self) -> String {
        [self.base.as_str(), "fence"].concat()
    }

    /// The server process that issued the last fence of the bucket.
    pub(crate) fn server(&self) -> String {
        [self.base.as_str(), "server"].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockkit_core::{LockName, Primitive};

    #[test]
    fn keys_lead_back_to_their_resource() {
        let prefix = Prefix::new("lk".into());
        let resource = Resource::new(Primitive::Mutex, LockName::new("a}b{c:*.").unwrap());
        let keys = prefix.keys(&resource);
        for key in [keys.main(), keys.part('q'), keys.part('w')] {
            assert!(key.starts_with(&keys.base), "{key}");
            assert_eq!(prefix.resource_of(&key), Some(resource.clone()));
        }
        assert_eq!(prefix.resource_of(&keys.fence()), None);
        assert_eq!(prefix.resource_of("other:{1}:mutex/a."), None);
    }

    #[test]
    fn slots_are_those_of_the_cluster_specification() {
        assert_eq!(CRC.checksum(b"123456789"), 0x31C3);
    }
}
