//! One node, as the algorithm sees it.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use lockkit_core::{AttemptId, Error, HoldId, Resource, Result};

use super::ballot::Proposed;

/// One round of a claim. A claim that asks again does so in a new round, so that no late message of an
/// old one can pass for one of the new.
#[derive(Clone, Debug)]
pub(crate) struct Bid {
    pub(crate) id: HoldId,
    pub(crate) ttl: Duration,
    pub(crate) round: u64,
    /// Since when, how and who, for people.
    pub(crate) tail: String,
}

/// A hold as a node confirms it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) token: u64,
    pub(crate) ttl: Duration,
    /// Whether its holder was asked to let go.
    pub(crate) asked: bool,
}

/// What a release found on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freed {
    /// A hold that was confirmed there.
    Confirmed,
    /// One that was only taken.
    Taken,
    Nothing,
}

/// Which holds of a claim a release is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// All.
    All,
    /// All, and its holder is told.
    Evicted,
    /// Those of this round and of earlier ones.
    UpTo(u64),
}

/// What a node knows of a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) hold: Option<Record>,
    /// The highest token of the name's bucket; 0 if there was none.
    pub(crate) counter: u64,
}

/// A hold as a node stores it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) attempt: AttemptId,
    /// 0 if it was not confirmed.
    pub(crate) token: u64,
    pub(crate) remaining: Duration,
    /// As it is stored, for another node.
    pub(crate) stored: Vec<u8>,
}

/// One node. Each call ends by itself, in a time that the node's settings bound; an error is a node
/// that has no vote, for whatever reason.
#[async_trait]
pub(crate) trait Voter: Debug + Send + Sync + 'static {
    /// An error of this node, in the name of this backend.
    fn named(&self, error: Error) -> Error;

    /// Waits until it can be asked.
    async fn ready(&self) -> Result<()>;

    /// Phase 1: takes the hold if it is free.
    async fn propose(&self, bid: &Bid) -> Result<Proposed>;

    /// Phase 2: writes the token; `false` if the hold is not that of this round any more, or if
    /// somebody was confirmed with one that is not lower.
    async fn confirm(&self, bid: &Bid, token: u64) -> Result<bool>;

    /// Renews what was confirmed; one answer for each id, `None` for what is not held there.
    async fn renew(&self, ids: &[HoldId]) -> Result<Vec<Option<Kept>>>;

    /// Takes over a hold that the majority has; `false` if somebody else was confirmed since.
    async fn repair(&self, id: &HoldId, record: &Record) -> Result<bool>;

    /// Gives a hold an expiry of its own; its token, or `None` if it is not held there.
    async fn extend(&self, id: &HoldId, ttl: Duration) -> Result<Option<u64>>;

    /// Lets a hold go.
    async fn release(&self, id: &HoldId, which: Which) -> Result<Freed>;

    /// Asks the holder to let go; the token of its hold, or `None` if there is nobody to ask.
    async fn request(&self, resource: &Resource) -> Result<Option<u64>>;

    /// What it knows.
    async fn inspect(&self, resource: &Resource) -> Result<Known>;

    /// What is held there.
    async fn names(&self) -> Result<Vec<Resource>>;
}
