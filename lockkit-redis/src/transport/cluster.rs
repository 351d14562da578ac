//! A cluster: each bucket's keys are in one slot, and each slot on one master at a time.
//!
//! The client library's own cluster connection repeats requests by itself, hides when it connects
//! anew, and does not tell when a subscription was ended by a moved slot; so the slots are followed
//! here, over the same links as everywhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use lockkit_core::{Error, ErrorKind, Result};
use tokio::time::{Instant, sleep, timeout};

use super::link::{Arrival, Ears, Link, Settings};
use super::node::Node;
use super::slots::{Range, ranges, redirection};
use super::{Address, Call, Endpoint, Failure, Lane, Live, Locate, Reply, Request, Server, driver};
use crate::descriptor::DRIVER;
use crate::error::translated;
use crate::key::{Bucket, Prefix};

/// How long to pause where a cluster is in the middle of a change.
const PAUSE: Duration = Duration::from_millis(20);

/// A cluster.
pub(crate) struct Cluster {
    seeds: Vec<Endpoint>,
    settings: Settings,
    prefix: Prefix,
    /// Who listens, and under which id.
    ears: Arc<dyn Ears>,
    client: String,
    map: RwLock<Map>,
    /// One look at the slots at a time.
    looking: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Map {
    /// Counts the looks, so that who waited for one does not look again.
    version: u64,
    masters: Vec<(Range, Arc<Member>)>,
    members: BTreeMap<String, Arc<Member>>,
}

/// One master, and the channels that are heard on it.
struct Member {
    endpoint: Endpoint,
    node: Node,
    /// A connection of its own: when a slot moves away, the server ends the subscription unasked,
    /// which the client library takes for the answer to a request.
    ear: Link,
    channels: Arc<Channels>,
}

impl Cluster {
    /// Connects to a cluster through any of these nodes.
    pub(crate) async fn open(
        seeds: Vec<Endpoint>,
        prefix: Prefix,
        ears: Arc<dyn Ears>,
        client: &str,
        settings: Settings,
    ) -> Result<Self> {
        let cluster = Self {
            seeds,
            settings,
            prefix,
            ears,
            client: client.to_owned(),
            map: RwLock::default(),
            looking: tokio::sync::Mutex::default(),
        };
        cluster.look(0).await?;
        Ok(cluster)
    }

    /// Runs a script where its keys are, wherever they move meanwhile.
    pub(crate) async fn eval(&self, lane: Lane, call: &Call<'_>) -> Result<Reply> {
        let end = Instant::now() + self.settings.timeout;
        let mut asking = None;
        loop {
            let (version, member) = match asking.take() {
                Some(member) => (None, member),
                None => {
                    let (version, member) = self.member_of(call.bucket).await?;
                    (Some(version), member)
                }
            };
            let outcome = member.node.eval(lane, call, version.is_none()).await;
            let failure = match outcome {
                Ok(Ok(reply)) => return Ok(reply),
                Ok(Err(failure)) => failure,
                Err(error) => {
                    // It may be gone for good, and another one in its place.
                    self.look_soon(version).await;
                    return Err(error);
                }
            };
            match &failure {
                Failure::Refused { code, detail } if Instant::now() < end => match code.as_str() {
                    "ASK" => match redirection(detail) {
                        Some((host, port)) => asking = Some(self.member_at(host, port).await?),
                        None => return Err(translated(failure)),
                    },
                    "MOVED" => self.look(version.unwrap_or(0)).await?,
                    "TRYAGAIN" => sleep(PAUSE).await,
                    "CLUSTERDOWN" | "READONLY" | "MASTERDOWN" | "LOADING" => {
                        sleep(PAUSE).await;
                        self.look_soon(version).await;
                    }
                    _ => return Err(translated(failure)),
                },
                Failure::Broken(_) | Failure::Silent(_) => {
                    self.look_soon(version).await;
                    return Err(translated(failure));
                }
                Failure::Refused { .. } => return Err(translated(failure)),
            }
        }
    }

    /// The connection to the node that has a bucket now.
    pub(crate) async fn live(&self, lane: Lane, bucket: Bucket) -> Result<Arc<Live>> {
        let (_, member) = self.member_of(bucket).await?;
        member.node.live(lane).await
    }

    /// Hears the channel of a bucket from now on.
    pub(crate) async fn listen(&self, bucket: Bucket) -> Result<()> {
        let channel = self.prefix.inbox(Some(bucket), &self.client);
        let end = Instant::now() + self.settings.timeout;
        loop {
            let (version, member) = self.member_of(bucket).await?;
            if member.channels.has(&channel) {
                return Ok(());
            }
            let heard = match member.ear.live().await {
                Ok(live) => live.subscribe(&channel, true).await,
                Err(error) => {
                    self.look_soon(Some(version)).await;
                    return Err(error);
                }
            };
            match heard {
                Ok(()) => {
                    member.channels.add(channel);
                    return Ok(());
                }
                Err(failure) if failure.is("MOVED") && Instant::now() < end => {
                    self.look(version).await?;
                }
                Err(failure @ Failure::Refused { .. }) => {
                    self.ears.deaf(&failure);
                    return Ok(());
                }
                Err(failure) => return Err(translated(failure)),
            }
        }
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
        for member in self.map().members.values() {
            member.node.close();
            member.ear.close();
        }
    }

    async fn member_of(&self, bucket: Bucket) -> Result<(u64, Arc<Member>)> {
        let slot = bucket.slot();
        for _ in 0..2 {
            let version = {
                let map = self.map();
                let mut masters = map.masters.iter();
                if let Some((_, member)) = masters.find(|(range, _)| range.slots.contains(&slot)) {
                    return Ok((map.version, Arc::clone(member)));
                }
                map.version
            };
            self.look(version).await?;
        }
        let message = "no node of the cluster has this slot at the moment";
        Err(Error::new(ErrorKind::Unavailable, message)
            .on(DRIVER)
            .with("slot", slot))
    }

    /// Looks which master has which slots, unless somebody did since `version`.
    async fn look(&self, version: u64) -> Result<()> {
        let _one = self.looking.lock().await;
        if self.map().version > version {
            return Ok(());
        }
        let mut last = None;
        for endpoint in self.candidates() {
            match self.ask(&endpoint).await {
                Ok(ranges) => return self.adopt(&endpoint, ranges).await,
                Err(error) => last = Some(error.with("node", &endpoint)),
            }
        }
        let error = || Error::new(ErrorKind::Unavailable, "no node of the cluster answered");
        Err(last.unwrap_or_else(|| error().on(DRIVER)))
    }

    /// The same, where it does not matter whether it succeeds.
    async fn look_soon(&self, version: Option<u64>) {
        let Some(version) = version else { return };
        let _ = timeout(self.settings.timeout, self.look(version)).await;
    }

    /// Whom to ask: those that are known to be there first.
    fn candidates(&self) -> Vec<Endpoint> {
        let map = self.map();
        let (up, down): (Vec<_>, Vec<_>) = map
            .members
            .values()
            .partition(|member| member.ear.if_up().is_some());
        let known = up
            .into_iter()
            .chain(down)
            .map(|member| member.endpoint.clone());
        known.chain(self.seeds.iter().cloned()).collect()
    }

    async fn ask(&self, endpoint: &Endpoint) -> Result<Vec<Range>> {
        let limit = self.settings.timeout;
        let asked = timeout(limit, async {
            let transport = driver::connect(endpoint, limit, Arc::new(|_| {})).await?;
            transport.send(&Request::new("CLUSTER SLOTS")).await
        });
        let silent = Failure::Silent(limit.as_millis().try_into().unwrap_or(u64::MAX));
        let reply = asked.await.unwrap_or(Err(silent)).map_err(|failure| {
            if failure.is("ERR") {
                let message = "this server is not a node of a cluster; write redis://HOST:PORT";
                return Error::new(ErrorKind::InvalidConfig, message).on(DRIVER);
            }
            translated(failure)
        })?;
        let ranges = ranges(&reply).filter(|ranges| !ranges.is_empty());
        ranges.ok_or_else(|| {
            let message =
                "the cluster has no slots yet; create it with `redis-cli --cluster create`";
            Error::new(ErrorKind::Unavailable, message).on(DRIVER)
        })
    }

    async fn adopt(&self, asked: &Endpoint, ranges: Vec<Range>) -> Result<()> {
        let own_host = match &asked.address {
            Address::Tcp { host, .. } => host.clone(),
            #[cfg(feature = "tls")]
            Address::Tls { host, .. } => host.clone(),
            Address::Unix(_) => String::from("localhost"),
        };
        let mut masters = Vec::with_capacity(ranges.len());
        for range in ranges {
            let host = range.host.as_deref().unwrap_or(&own_host);
            match self.member_at(host, range.port).await {
                Ok(member) => masters.push((range, member)),
                // Its slots have no master at the moment; the others do.
                Err(error) if error.is_retryable() => {}
                Err(error) => return Err(error),
            }
        }
        let in_use: BTreeSet<String> = masters
            .iter()
            .map(|(_, member)| member.endpoint.to_string())
            .collect();
        let gone: Vec<Arc<Member>> = {
            let mut map = self.map.write().unwrap_or_else(PoisonError::into_inner);
            map.version += 1;
            map.masters = masters;
            let gone = map.members.keys().filter(|name| !in_use.contains(*name));
            let gone: Vec<String> = gone.cloned().collect();
            gone.iter()
                .filter_map(|name| map.members.remove(name))
                .collect()
        };
        let lost_ears = gone.iter().any(|member| !member.channels.is_empty());
        drop(gone);
        if lost_ears {
            self.ears.connected(Arrival::Elsewhere);
        }
        Ok(())
    }

    /// The connections to a node; makes them if there are none.
    async fn member_at(&self, host: &str, port: u16) -> Result<Arc<Member>> {
        let endpoint = self.seeds[0].at(host, port);
        let name = endpoint.to_string();
        if let Some(member) = self.map().members.get(&name) {
            return Ok(Arc::clone(member));
        }
        let locate = Arc::new(Master(endpoint.clone()));
        let channels = Arc::new(Channels {
            heard: Mutex::default(),
            ears: Arc::clone(&self.ears),
        });
        let (node, ear) = futures_util::try_join!(
            Node::open(
                Arc::<Master>::clone(&locate),
                Arc::new(ResumeEars(Arc::clone(&self.ears))),
                self.settings
            ),
            Link::open(
                Arc::<Master>::clone(&locate),
                Arc::<Channels>::clone(&channels),
                self.settings
            ),
        )?;
        let member = Arc::new(Member {
            endpoint,
            node,
            ear,
            channels,
        });
        let mut map = self.map.write().unwrap_or_else(PoisonError::into_inner);
        Ok(Arc::clone(map.members.entry(name).or_insert(member)))
    }

    fn map(&self) -> std::sync::RwLockReadGuard<'_, Map> {
        self.map.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("seeds", &self.seeds)
            .finish_non_exhaustive()
    }
}

/// A node that must be a master of a cluster.
#[derive(Debug)]
struct Master(Endpoint);

#[async_trait]
impl Locate for Master {
    async fn locate(&self) -> Result<Endpoint> {
        Ok(self.0.clone())
    }

    fn check(&self, server: &Server) -> Result<()> {
        if server.version_number() < (7, 0) {
            let message = "a cluster has to be of 7.0 or newer, which has channels of slots; \
                           upgrade it";
            return Err(Error::new(ErrorKind::Unsupported, message)
                .on(DRIVER)
                .with("version", &server.version));
        }
        super::locate::check_master(server)
    }

    fn address(&self) -> String {
        self.0.to_string()
    }
}

/// The channels that are heard on one master.
struct Channels {
    heard: Mutex<BTreeSet<String>>,
    ears: Arc<dyn Ears>,
}

impl Channels {
    fn has(&self, channel: &str) -> bool {
        self.locked().contains(channel)
    }

    fn add(&self, channel: String) {
        self.locked().insert(channel);
    }

    fn is_empty(&self) -> bool {
        self.locked().is_empty()
    }

    fn locked(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ears for Channels {
    /// None: a channel whose slot has moved away would be refused, and whoever waits asks again for
    /// its own.
    fn channels(&self) -> Vec<String> {
        self.locked().clear();
        Vec::new()
    }

    fn heard(&self, message: &[u8]) {
        self.ears.heard(message);
    }

    /// A slot has moved away. Whoever waits asks again, and hears the channel where it is now.
    fn missed(&self) {
        self.locked().clear();
        self.ears.missed();
    }

    fn connected(&self, arrival: Arrival) {
        if arrival != Arrival::First {
            self.ears.missed();
        }
    }

    fn deaf(&self, failure: &Failure) {
        self.ears.deaf(failure);
    }
}

impl fmt::Debug for Channels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Channels").field(&*self.locked()).finish()
    }
}

/// Tells when the connection for requests is back.
#[derive(Debug)]
struct ResumeEars(Arc<dyn Ears>);

impl Ears for ResumeEars {
    fn channels(&self) -> Vec<String> {
        Vec::new()
    }

    fn heard(&self, _: &[u8]) {}

    fn missed(&self) {}

    fn connected(&self, arrival: Arrival) {
        if arrival != Arrival::First {
            self.0.connected(arrival);
        }
    }

    fn deaf(&self, _: &Failure) {}
}
