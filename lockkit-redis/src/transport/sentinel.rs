//! Following a master that sentinels watch.
//!
//! Each time a link connects, the sentinels are asked where the master is, and who has heard of the
//! newest failover is believed; whoever answers there must say that it is one. Between that, one sentinel is listened to: it tells when a failover is
//! over, also where the old master is still there and does not know.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use lockkit_core::{Error, ErrorKind, Result};
use tokio::sync::{OnceCell, watch};
use tokio::time::{Instant, timeout, timeout_at};

use super::link::{Arrival, Ears, Link, Settings};
use super::locate::check_master;
use super::{Endpoint, Failure, Locate, Reply, Request, Server, driver};
use crate::descriptor::DRIVER;
use crate::error::translated;

/// How long to wait for a second sentinel, once one has answered.
const SLOWER: Duration = Duration::from_millis(100);

/// A master, by the name under which sentinels know it.
#[derive(Debug)]
pub(crate) struct Sentinels {
    endpoints: Vec<Endpoint>,
    service: String,
    /// How to log in at the master.
    master: Endpoint,
    settings: Settings,
    /// How often the master has moved, as far as was heard.
    moves: Arc<watch::Sender<u64>>,
    /// The sentinel that is listened to.
    listening: OnceCell<Link>,
}

impl Sentinels {
    pub(crate) fn new(
        endpoints: Vec<Endpoint>,
        service: String,
        master: Endpoint,
        settings: Settings,
    ) -> Self {
        Self {
            endpoints,
            service,
            master,
            settings,
            moves: Arc::new(watch::Sender::new(0)),
            listening: OnceCell::new(),
        }
    }

    /// Listens to a sentinel from now on, first to this one. Without it a failover is noticed as
    /// well, only later.
    async fn listen(&self, first: usize) {
        let open = || {
            let nearest = Nearest {
                endpoints: self.endpoints.clone(),
                next: AtomicUsize::new(first),
            };
            let ears = SwitchEars {
                service: self.service.clone(),
                moves: Arc::clone(&self.moves),
            };
            Link::open(Arc::new(nearest), Arc::new(ears), self.settings)
        };
        let _ = self.listening.get_or_try_init(open).await;
    }

    /// Asks one sentinel; `None` if it does not know this master.
    async fn ask(&self, sentinel: &Endpoint) -> Result<Option<Named>> {
        let limit = self.settings.timeout;
        let asked = timeout(limit, async {
            let transport = driver::connect(sentinel, limit, Arc::new(|_| {})).await?;
            let questions = ["SENTINEL GET-MASTER-ADDR-BY-NAME", "SENTINEL MASTER"];
            let questions = questions.map(|question| Request::new(question).arg(&self.service));
            transport.send_all(&questions).await
        });
        let silent = Failure::Silent(limit.as_millis().try_into().unwrap_or(u64::MAX));
        let mut replies = asked
            .await
            .unwrap_or(Err(silent))
            .map_err(translated)?
            .into_iter();
        let reply = replies.next().transpose().map_err(translated)?;
        let Some([host, port]) = reply.as_ref().and_then(Reply::as_array) else {
            return Ok(None);
        };
        let (host, port) = (host.as_text(), port.as_text());
        let Some((host, port)) = host.zip(port.and_then(|port| port.parse().ok())) else {
            return Ok(None);
        };
        // Where it is not allowed to ask this, all are believed alike.
        let about = replies.next().and_then(Result::ok);
        let epoch = about.as_ref().and_then(|about| about.field("config-epoch"));
        let epoch = epoch.and_then(|epoch| epoch.as_text()?.parse().ok());
        Ok(Some(Named {
            epoch: epoch.unwrap_or(0),
            master: self.master.at(host, port),
        }))
    }
}

#[async_trait]
impl Locate for Sentinels {
    async fn locate(&self) -> Result<Endpoint> {
        let mut last = None;
        let mut known = false;
        let mut newest: Option<(usize, Named)> = None;
        let ask = |at: usize| async move { (at, self.ask(&self.endpoints[at]).await) };
        let mut answers: FuturesUnordered<_> = (0..self.endpoints.len()).map(ask).collect();
        // Those who are much slower than the first need not be waited for.
        let mut end = Instant::now() + self.settings.timeout;
        while let Ok(Some((at, answer))) = timeout_at(end, answers.next()).await {
            match answer {
                Ok(Some(named)) => {
                    end = end.min(Instant::now() + SLOWER);
                    if newest
                        .as_ref()
                        .is_none_or(|(_, known)| named.epoch > known.epoch)
                    {
                        newest = Some((at, named));
                    }
                }
                Ok(None) => known = true,
                Err(error) => last = Some(error.with("sentinel", &self.endpoints[at])),
            }
        }
        if let Some((at, named)) = newest {
            self.listen(at).await;
            return Ok(named.master);
        }
        if known {
            let message = "the sentinels do not know a master of this name; check the path of the \
                           URL against `sentinel monitor`";
            return Err(Error::new(ErrorKind::InvalidConfig, message)
                .on(DRIVER)
                .with("name", &self.service));
        }
        let message = "no sentinel answered";
        let error = Error::new(ErrorKind::Unavailable, message).on(DRIVER);
        Err(match last {
            Some(last) if last.kind() == ErrorKind::PermissionDenied => last,
            Some(last) => error.because(last),
            None => error,
        })
    }

    fn check(&self, server: &Server) -> Result<()> {
        // The one that the sentinels name may not know yet that it was promoted, or not any more.
        check_master(server)
    }

    fn moves(&self) -> Option<watch::Receiver<u64>> {
        Some(self.moves.subscribe())
    }

    fn close(&self) {
        if let Some(listening) = self.listening.get() {
            listening.close();
        }
    }

    fn address(&self) -> String {
        format!("master `{}` of the sentinels", self.service)
    }
}

/// What a sentinel says.
struct Named {
    /// Counts the failovers: in the middle of one, the sentinels do not agree for a moment.
    epoch: u64,
    master: Endpoint,
}

/// Any sentinel.
#[derive(Debug)]
struct Nearest {
    endpoints: Vec<Endpoint>,
    next: AtomicUsize,
}

#[async_trait]
impl Locate for Nearest {
    async fn locate(&self) -> Result<Endpoint> {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        Ok(self.endpoints[next % self.endpoints.len()].clone())
    }

    fn check(&self, _: &Server) -> Result<()> {
        Ok(())
    }

    fn address(&self) -> String {
        "sentinel".into()
    }
}

/// Hears of failovers.
#[derive(Debug)]
struct SwitchEars {
    service: String,
    moves: Arc<watch::Sender<u64>>,
}

impl Ears for SwitchEars {
    fn channels(&self) -> Vec<String> {
        vec!["+switch-master".into()]
    }

    /// `NAME OLD-HOST OLD-PORT NEW-HOST NEW-PORT`.
    fn heard(&self, message: &[u8], _: &str) {
        let name = message.split(|byte| *byte == b' ').next();
        if name == Some(self.service.as_bytes()) {
            self.moves.send_modify(|moves| *moves += 1);
        }
    }

    fn missed(&self) {}

    /// A failover may have passed unheard.
    fn connected(&self, arrival: Arrival) {
        if arrival != Arrival::First {
            self.moves.send_modify(|moves| *moves += 1);
        }
    }

    fn deaf(&self, _: &Failure) {}
}
