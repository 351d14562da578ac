//! Finding out which master has which slots.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use lockkit_core::{Error, ErrorKind, Result};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::nodes::Cluster;
use crate::descriptor::DRIVER;
use crate::error::translated;
use crate::transport::link::closed;
use crate::transport::slots::{Range, ranges};
use crate::transport::{Address, Arrival, Endpoint, Failure, Request, driver};

/// How long to pause where a cluster is in the middle of a change.
pub(super) const PAUSE: Duration = Duration::from_millis(20);

/// How often to look whether somebody has taken over from a master that is gone.
const PACE: Duration = Duration::from_millis(500);

impl Cluster {
    /// Looks which master has which slots, unless somebody did since `version`; asks first whoever
    /// must know.
    pub(super) async fn look(&self, version: u64, who: Option<&Endpoint>) -> Result<()> {
        let mut looked = self.looking.lock().await;
        if self.map().version > version {
            return Ok(());
        }
        if self.closed.load(Ordering::SeqCst) {
            return Err(closed());
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
    pub(super) async fn look_soon(&self, version: Option<u64>) {
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
        let (gone, has_lost_a_master) = {
            let mut map = self.map.write().unwrap_or_else(PoisonError::into_inner);
            map.renew(masters)
        };
        drop(gone);
        if has_lost_a_master {
            // Whoever took over may know less.
            self.ears.connected(Arrival::Elsewhere);
        }
        Ok(())
    }
}

/// While a master cannot be reached, looks who has taken its slots over, so that those who wait for
/// a message follow, too.
pub(super) async fn follow(cluster: Weak<Cluster>, trouble: Arc<Notify>) {
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
                let is_complete = map
                    .members
                    .values()
                    .all(|member| member.node.if_up().is_some());
                (map.version, is_complete)
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
