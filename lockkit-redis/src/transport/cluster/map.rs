//! Which master has which slots, as far as is known.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::member::Member;
use crate::key::Bucket;
use crate::transport::slots::Range;

/// What was seen when somebody looked last.
#[derive(Default)]
pub(super) struct Map {
    /// Counts the looks, so that who waited for one does not look again.
    pub(super) version: u64,
    pub(super) masters: Vec<(Range, Arc<Member>)>,
    pub(super) members: BTreeMap<String, Arc<Member>>,
}

impl Map {
    /// Takes in what was seen now. Gives the members that are masters no more, whose connections end
    /// when they are dropped, and whether one of them had slots before.
    pub(super) fn renew(&mut self, masters: Vec<(Range, Arc<Member>)>) -> (Vec<Arc<Member>>, bool) {
        let name = |(_, member): &(Range, Arc<Member>)| member.endpoint.to_string();
        let in_use: BTreeSet<String> = masters.iter().map(name).collect();
        self.version += 1;
        let old = std::mem::replace(&mut self.masters, masters);
        let has_lost_a_master = old.iter().any(|master| !in_use.contains(&name(master)));
        let gone = self.members.keys().filter(|name| !in_use.contains(*name));
        let gone: Vec<String> = gone.cloned().collect();
        let gone = gone.iter().filter_map(|name| self.members.remove(name));
        (gone.collect(), has_lost_a_master)
    }

    pub(super) fn master_of(&self, slot: u16) -> Option<&Arc<Member>> {
        let mut masters = self.masters.iter();
        let found = masters.find(|(range, _)| range.slots.contains(&slot));
        found.map(|(_, member)| member)
    }

    pub(super) fn heard(&self, bucket: Bucket, channel: &str) -> bool {
        let master = self.master_of(bucket.slot());
        master.is_some_and(|member| member.channels.has(channel))
    }
}
