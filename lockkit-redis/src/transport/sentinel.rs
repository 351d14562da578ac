//! Following a master that sentinels watch.
//!
//! Each time a link connects, the sentinels are asked where the master is, and whoever answers there
//! must say that it is one. Between that, one sentinel is listened to: it tells when a failover is
//! over, also where the old master is still there and does not know.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use lockkit_core::{Error, ErrorKind, Result};
use tokio::sync::{OnceCell, watch};
use tokio::time::timeout;

use super::link::{Arrival, Ears, Link, Settings};
use super::locate::check_master;
use super::{Endpoint, Failure, Locate, Request, Server, driver};
use crate::descriptor::DRIVER;
use crate::error::translated;

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
    async fn ask(&self, sentinel: &Endpoint) -> Result<Option<Endpoint>> {
        let limit = self.settings.timeout;
        let asked = timeout(limit, async {
            let transport = driver::connect(sentinel, limit, Arc::new(|_| {})).await?;
            let request = Request::new("SENTINEL GET-MASTER-ADDR-BY-NAME").arg(&self.service);
            transport.send(&request).await
        });
        let silent = Failure::Silent(limit.as_millis().try_into().unwrap_or(u64::MAX));
        let reply = asked.await.unwrap_or(Err(silent)).map_err(translated)?;
        let Some([host, port]) = reply.as_array() else {
            return Ok(None);
        };
        let (host, port) = (host.as_text(), port.as_text());
        let master = host.zip(port.and_then(|port| port.parse().ok()));
        Ok(master.map(|(host, port)| self.master.at(host, port)))
    }
}

#[async_trait]
impl Locate for Sentinels {
    async fn locate(&self) -> Result<Endpoint> {
        let mut last = None;
        let mut known = false;
        // From another one each time, so that one that is behind does not mislead for ever.
        let count = self.endpoints.len();
        let first = rand::random_range(0..count);
        for at in (first..first + count).map(|at| at % count) {
            let sentinel = &self.endpoints[at];
            match self.ask(sentinel).await {
                Ok(Some(master)) => {
                    self.listen(at).await;
                    return Ok(master);
                }
                Ok(None) => known = true,
                Err(error) => last = Some(error.with("sentinel", sentinel)),
            }
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
    fn heard(&self, message: &[u8]) {
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
