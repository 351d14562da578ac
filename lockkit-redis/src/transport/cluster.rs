//! A cluster: each bucket's keys are in one slot, and each slot on one master at a time.
//!
//! The client library's own cluster connection repeats requests by itself, hides when it connects
//! anew, and does not tell when a subscription was ended by a moved slot; so the slots are followed
//! here, over the same links as everywhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::Duration;

use async_trait::async_trait;
use lockkit_core::{Error, ErrorKind, Result};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::link::{Arrival, Ears, Link, Settings};
use super::node::Node;
use super::slots::{Range, ranges, redirection};
use super::{
    Address, Endpoint, Errand, Failure, Lane, Live, Locate, Reply, Request, Server, driver,
};
use crate::descriptor::DRIVER;
use crate::error::translated;
use crate::key::{Bucket, Prefix};

/// How long to pause where a cluster is in the middle of a change.
const PAUSE: Duration = Duration::from_millis(20);

/// How often to look whether somebody has taken over from a master that is gone.
const PACE: Duration = Duration::from_millis(500);

/// A cluster.
pub(crate) struct Cluster {
    seeds: Vec<Endpoint>,
    settings: Settings,
    prefix: Prefix,
    /// Who listens, and under which id.
    ears: Arc<dyn Ears>,
    client: String,
    map: RwLock<Map>,
    /// One look at the slots at a time; when the last one was.
    looking: tokio::sync::Mutex<Option<Instant>>,
    /// Rings when a master cannot be reached any more.
    trouble: Arc<Notify>,
    closed: AtomicBool,
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

    /// Runs an errand where its keys are, wherever they move meanwhile.
    pub(crate) async fn run(
        &self,
        lane: Lane,
        errand: &Errand<'_>,
    ) -> Result<Result<Reply, Failure>> {
        let end = Instant::now() + self.settings.timeout;
        let mut asking = None;
        loop {
            let (version, member) = match asking.take() {
                Some(member) => (None, member),
                None => {
                    let (version, member) = self.member_of(errand.bucket()).await?;
                    (Some(version), member)
                }
            };
            let outcome = member.node.run(lane, errand, version.is_none()).await;
            let failure = match outcome {
                Ok(Ok(reply)) => return Ok(Ok(reply)),
                Ok(Err(failure)) => failure,
                Err(error) => {
                    // It may be gone for good, and another one in its place.
                    self.look_soon(version).await;
                    return Err(error);
                }
            };
            match &failure {
                Failure::Refused { code, detail } if Instant::now() < end => match code.as_str() {
                    "ASK" => match member.sends_to(detail) {
                        Some(endpoint) => asking = Some(self.member_at(endpoint).await?),
                        None => return Ok(Err(failure)),
                    },
                    "MOVED" => {
                        let owner = member.sends_to(detail);
                        self.look(version.unwrap_or(0), owner.as_ref()).await?;
                    }
                    "TRYAGAIN" => sleep(PAUSE).await,
                    "CLUSTERDOWN" | "READONLY" | "MASTERDOWN" | "LOADING" => {
                        sleep(PAUSE).await;
                        self.look_soon(version).await;
                    }
                    _ => return Ok(Err(failure)),
                },
                Failure::Broken(_) | Failure::Silent(_) => {
                    self.look_soon(version).await;
                    return Ok(Err(failure));
                }
                Failure::Refused { .. } => return Ok(Err(failure)),
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
            let live = match member.ear.live().await {
                Ok(live) => live,
                Err(error) => {
                    self.look_soon(Some(version)).await;
                    return Err(error);
                }
            };
            let gaps = member.channels.gaps();
            match subscribe(&live, &channel).await {
                Ok(true) if member.channels.add(&channel, gaps) => return Ok(()),
                Ok(_) if Instant::now() < end => {
                    sleep(PAUSE).await;
                    self.look(version, None).await?;
                }
                Ok(_) => {
                    let message = "the slot is moving to another node at the moment";
                    return Err(Error::new(ErrorKind::Unavailable, message).on(DRIVER));
                }
                Err(Failure::Refused { code, detail })
                    if code == "MOVED" && Instant::now() < end =>
                {
                    let owner = member.sends_to(&detail);
                    self.look(version, owner.as_ref()).await?;
                }
                Err(failure) if failure.is("NOPERM") => {
                    self.ears.deaf(&failure);
                    return Ok(());
                }
                Err(failure) => return Err(translated(failure)),
            }
        }
    }

    /// Sees to it that the channel of a bucket is heard, sooner or later: that of a hold, whose slot
    /// may have moved since it was taken.
    pub(crate) fn keep_listening(self: &Arc<Self>, bucket: Bucket) {
        let channel = self.prefix.inbox(Some(bucket), &self.client);
        if self.map().heard(bucket, &channel) {
            return;
        }
        let cluster = Arc::clone(self);
        tokio::spawn(async move {
            // The next renewal tries again.
            let _ = cluster.listen(bucket).await;
        });
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

    async fn member_of(&self, bucket: Bucket) -> Result<(u64, Arc<Member>)> {
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

    /// Looks which master has which slots, unless somebody did since `version`; asks first whoever
    /// must know.
    async fn look(&self, version: u64, who: Option<&Endpoint>) -> Result<()> {
        let mut looked = self.looking.lock().await;
        if self.map().version > version {
            return Ok(());
        }
        if self.closed.load(Ordering::SeqCst) {
            return Err(super::link::closed());
        }
        // In the middle of a change one look would follow on the other.
        if let Some(looked) = *looked {
            sleep_until(looked + PAUSE).await;
        }
        *looked = Some(Instant::now());
        let mut last = None;
        for endpoint in who.cloned().into_iter().chain(self.candidates()) {
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
        let _ = timeout(self.settings.timeout, self.look(version, None)).await;
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
        let question = Request::new("CLUSTER SLOTS");
        let known = self.map().members.get(&endpoint.to_string()).cloned();
        let up = known.and_then(|member| member.node.if_up());
        let asked = timeout(limit, async {
            if let Some(live) = up {
                return live.send(&question).await;
            }
            let transport = driver::connect(endpoint, limit, Arc::new(|_| {})).await?;
            transport.send(&question).await
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
            let endpoint = self.seeds[0].at(host, range.port);
            match self.member_at(endpoint).await {
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
        let (gone, has_lost_a_master): (Vec<Arc<Member>>, bool) = {
            let mut map = self.map.write().unwrap_or_else(PoisonError::into_inner);
            map.version += 1;
            let old = std::mem::replace(&mut map.masters, masters);
            let is_gone =
                |(_, member): &(Range, Arc<Member>)| !in_use.contains(&member.endpoint.to_string());
            let has_lost_a_master = old.iter().any(is_gone);
            let gone = map.members.keys().filter(|name| !in_use.contains(*name));
            let gone: Vec<String> = gone.cloned().collect();
            let gone = gone.iter().filter_map(|name| map.members.remove(name));
            (gone.collect(), has_lost_a_master)
        };
        drop(gone);
        if has_lost_a_master {
            // Whoever took over may know less.
            self.ears.connected(Arrival::Elsewhere);
        }
        Ok(())
    }

    /// The connections to a node; makes them if there are none.
    async fn member_at(&self, endpoint: Endpoint) -> Result<Arc<Member>> {
        let name = endpoint.to_string();
        if let Some(member) = self.map().members.get(&name) {
            return Ok(Arc::clone(member));
        }
        let locate = Arc::new(Master(endpoint.clone()));
        let channels = Arc::new(Channels {
            heard: Mutex::default(),
            gaps: AtomicU64::new(0),
            ears: Arc::clone(&self.ears),
        });
        let (node, ear) = futures_util::try_join!(
            Node::open(
                Arc::<Master>::clone(&locate),
                Arc::new(ResumeEars {
                    ears: Arc::clone(&self.ears),
                    trouble: Arc::clone(&self.trouble),
                }),
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
        if self.closed.load(Ordering::SeqCst) {
            return Err(super::link::closed());
        }
        Ok(Arc::clone(map.members.entry(name).or_insert(member)))
    }

    fn map(&self) -> std::sync::RwLockReadGuard<'_, Map> {
        self.map.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.trouble.notify_one();
    }
}

impl Map {
    fn master_of(&self, slot: u16) -> Option<&Arc<Member>> {
        let mut masters = self.masters.iter();
        let found = masters.find(|(range, _)| range.slots.contains(&slot));
        found.map(|(_, member)| member)
    }

    fn heard(&self, bucket: Bucket, channel: &str) -> bool {
        let master = self.master_of(bucket.slot());
        master.is_some_and(|member| member.channels.has(channel))
    }
}

impl Member {
    /// Where it sends somebody whom it cannot serve: `MOVED` or `ASK`.
    fn sends_to(&self, detail: &str) -> Option<Endpoint> {
        let (host, port) = redirection(detail)?;
        Some(match (host, &self.endpoint.address) {
            ("", Address::Tcp { host, .. }) => self.endpoint.at(host, port),
            #[cfg(feature = "tls")]
            ("", Address::Tls { host, .. }) => self.endpoint.at(host, port),
            _ => self.endpoint.at(host, port),
        })
    }
}

/// Hears a channel; `false` if the node is no master any more. It would say yes all the same, and
/// pass on what the master says to those whom the master cannot reach: grants that were given to
/// somebody else instead.
async fn subscribe(live: &Live, channel: &str) -> Result<bool, Failure> {
    live.subscribe(channel, true).await?;
    let role = match live.send(&Request::new("ROLE")).await {
        Err(failure) if failure.is("NOPERM") => return Ok(true),
        role => role?,
    };
    let word = role.as_array().and_then(|role| role.first()?.as_text());
    Ok(word == Some("master"))
}

/// While a master cannot be reached, looks who has taken its slots over, so that those who wait for
/// a message follow, too.
async fn follow(cluster: Weak<Cluster>, trouble: Arc<Notify>) {
    loop {
        trouble.notified().await;
        loop {
            let Some(cluster) = cluster.upgrade() else {
                return;
            };
            if cluster.closed.load(Ordering::SeqCst) {
                return;
            }
            let (version, is_complete) = {
                let map = cluster.map();
                let is_up = |member: &Arc<Member>| member.node.if_up().is_some();
                (map.version, map.members.values().all(is_up))
            };
            if is_complete {
                break;
            }
            cluster.look_soon(Some(version)).await;
            drop(cluster);
            sleep(PACE.mul_f64(rand::random_range(0.5..1.0))).await;
        }
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
    /// How often all were lost.
    gaps: AtomicU64,
    ears: Arc<dyn Ears>,
}

impl Channels {
    fn has(&self, channel: &str) -> bool {
        self.locked().contains(channel)
    }

    fn gaps(&self) -> u64 {
        let _heard = self.locked();
        self.gaps.load(Ordering::SeqCst)
    }

    /// Notes that a channel is heard, unless all were lost since there were so many gaps.
    fn add(&self, channel: &str, gaps: u64) -> bool {
        let mut heard = self.locked();
        let is_heard = self.gaps.load(Ordering::SeqCst) == gaps;
        if is_heard {
            heard.insert(channel.to_owned());
        }
        is_heard
    }

    fn forget_all(&self) {
        let mut heard = self.locked();
        self.gaps.fetch_add(1, Ordering::SeqCst);
        heard.clear();
    }

    fn locked(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ears for Channels {
    /// None: a channel whose slot has moved away would be refused, and whoever waits asks again for
    /// its own.
    fn channels(&self) -> Vec<String> {
        self.forget_all();
        Vec::new()
    }

    fn heard(&self, message: &[u8], reign: &str) {
        self.ears.heard(message, reign);
    }

    /// A slot has moved away. Whoever waits asks again, and hears the channel where it is now.
    fn missed(&self) {
        self.forget_all();
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

/// Tells when the connection for requests is lost, and when it is back.
#[derive(Debug)]
struct ResumeEars {
    ears: Arc<dyn Ears>,
    trouble: Arc<Notify>,
}

impl Ears for ResumeEars {
    fn channels(&self) -> Vec<String> {
        Vec::new()
    }

    fn heard(&self, _: &[u8], _: &str) {}

    fn missed(&self) {}

    fn lost(&self) {
        self.trouble.notify_one();
    }

    fn connected(&self, arrival: Arrival) {
        if arrival != Arrival::First {
            self.ears.connected(arrival);
        }
    }

    fn deaf(&self, _: &Failure) {}
}
