//! The nodes of a cluster, together.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use lockkit_core::{Error, ErrorKind, Result};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::look::follow;
use super::map::Map;
use super::member::Member;
use crate::descriptor::DRIVER;
use crate::key::{Bucket, Prefix};
use crate::transport::{Ears, Endpoint, Lane, Live, Settings};

/// A cluster.
pub(crate) struct Cluster {
    pub(super) seeds: Vec<Endpoint>,
    pub(super) settings: Settings,
    pub(super) prefix: Prefix,
    /// Who listens, and under which id.
    pub(super) ears: Arc<dyn Ears>,
    pub(super) client: String,
    pub(super) map: RwLock<Map>,
    /// One look at the slots at a time; when the last one was.
    pub(super) looking: tokio::sync::Mutex<Option<Instant>>,
    /// Rings when a master cannot be reached any more.
    pub(super) trouble: Arc<Notify>,
    pub(super) closed: AtomicBool,
}

impl Cluster {
    /// Connects to a cluster through any of these nodes.
    pub(crate) async fn open(
        seeds: Vec<Endpoint>,
        prefix: Prefix,
        ears: Arc<dyn Ears>,
        client: &str,
        settings: Settings,
    ) -> Result<Arc<Self>> {
        let cluster = Arc::new(Self {
            seeds,
            settings,
            prefix,
            ears,
            client: client.to_owned(),
            map: RwLock::default(),
            looking: tokio::sync::Mutex::default(),
            trouble: Arc::default(),
            closed: AtomicBool::new(false),
        });
        cluster.look(0, None).await?;
        let trouble = Arc::clone(&cluster.trouble);
        tokio::spawn(follow(Arc::downgrade(&cluster), trouble));
        Ok(cluster)
    }

    /// The connection to the node that has a bucket now.
    pub(crate) async fn live(&self, lane: Lane, bucket: Bucket) -> Result<Arc<Live>> {
        let (_, member) = self.member_of(bucket).await?;
        member.node.live(lane).await
    }

    /// A connection to each master.
    pub(crate) async fn all(&self) -> Result<Vec<Arc<Live>>> {
        let members: Vec<Arc<Member>> = self
            .map()
            .masters
            .iter()
            .map(|(_, m)| Arc::clone(m))
            .collect();
        let mut seen = BTreeSet::new();
        let mut all = Vec::new();
        for member in members {
            if seen.insert(member.endpoint.to_string()) {
                all.push(member.node.live(Lane::Work).await?);
            }
        }
        Ok(all)
    }

    /// The connections that are up at this moment.
    pub(crate) fn all_up(&self) -> Vec<Arc<Live>> {
        let map = self.map();
        map.members
            .values()
            .filter_map(|member| member.node.if_up())
            .collect()
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.trouble.notify_one();
        for member in self.map().members.values() {
            member.node.close();
            member.ear.close();
        }
    }

    pub(super) async fn member_of(&self, bucket: Bucket) -> Result<(u64, Arc<Member>)> {
        let slot = bucket.slot();
        for _ in 0..2 {
            let version = {
                let map = self.map();
                if let Some(member) = map.master_of(slot) {
                    return Ok((map.version, Arc::clone(member)));
                }
                map.version
            };
            self.look(version, None).await?;
        }
        let message = "no node of the cluster has this slot at the moment";
        Err(Error::new(ErrorKind::Unavailable, message)
            .on(DRIVER)
            .with("slot", slot))
    }

    pub(super) fn map(&self) -> RwLockReadGuard<'_, Map> {
        self.map.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.trouble.notify_one();
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("seeds", &self.seeds)
            .finish_non_exhaustive()
    }
}
