//! Which server a request goes to.

use std::sync::Arc;

use lockkit_core::Result;

use super::{Call, Cluster, Errand, Failure, Lane, Live, Node, Reply};
use crate::error::translated;
use crate::key::Bucket;

/// The servers of a deployment.
#[derive(Debug)]
pub(crate) enum Route {
    /// All keys are on one server, wherever that is at the moment.
    One(Box<Node>),
    /// Each bucket is on one of several.
    Several(Arc<Cluster>),
}

impl Route {
    /// Runs a script where its keys are.
    pub(crate) async fn eval(&self, lane: Lane, call: &Call<'_>) -> Result<Reply> {
        self.run(lane, &Errand::Script(call))
            .await?
            .map_err(translated)
    }

    /// Runs an errand where its keys are; for who wants to know how it was refused.
    pub(crate) async fn run(
        &self,
        lane: Lane,
        errand: &Errand<'_>,
    ) -> Result<Result<Reply, Failure>> {
        match self {
            Self::One(node) => node.run(lane, errand, false).await,
            Self::Several(cluster) => Box::pin(cluster.run(lane, errand)).await,
        }
    }

    /// The connection to where the keys of a bucket are.
    pub(crate) async fn live(&self, lane: Lane, bucket: Bucket) -> Result<Arc<Live>> {
        match self {
            Self::One(node) => node.live(lane).await,
            Self::Several(cluster) => Box::pin(cluster.live(lane, bucket)).await,
        }
    }

    /// Makes sure that messages about this bucket are heard.
    pub(crate) async fn listen(&self, bucket: Bucket) -> Result<()> {
        match self {
            Self::One(_) => Ok(()), // One channel for all, heard from the start.
            Self::Several(cluster) => Box::pin(cluster.listen(bucket)).await,
        }
    }

    /// Sees to it that messages about this bucket are heard, sooner or later.
    pub(crate) fn keep_listening(&self, bucket: Bucket) {
        match self {
            Self::One(_) => {}
            Self::Several(cluster) => cluster.keep_listening(bucket),
        }
    }

    /// A connection to each server, for what is asked of all.
    pub(crate) async fn all(&self) -> Result<Vec<Arc<Live>>> {
        match self {
            Self::One(node) => Ok(vec![node.live(Lane::Work).await?]),
            Self::Several(cluster) => cluster.all().await,
        }
    }

    /// The connections that are up at this moment.
    pub(crate) fn all_up(&self) -> Vec<Arc<Live>> {
        match self {
            Self::One(node) => node.if_up().into_iter().collect(),
            Self::Several(cluster) => cluster.all_up(),
        }
    }

    /// Whether keys of different buckets can be used in one script.
    pub(crate) const fn is_one(&self) -> bool {
        matches!(self, Self::One(_))
    }

    /// Ends all connections.
    pub(crate) fn close(&self) {
        match self {
            Self::One(node) => node.close(),
            Self::Several(cluster) => cluster.close(),
        }
    }
}
