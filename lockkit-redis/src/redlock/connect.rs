//! From a URL to a connected backend.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use lockkit_core::{Descriptor, Error, ErrorKind, FenceClass, Guarantee, Result};

use super::admission::Admission;
use super::backend::Shared;
use super::council::Council;
use super::descriptor::{DESCRIPTOR, DRIVER, MAX_LEASE};
use super::ears::Hearing;
use super::keys::Keys;
use super::peer::Peer;
use super::roll::{Place, Roll};
use super::scripts::Scripts;
use super::seat::Seat;
use super::voter::Voter;
use crate::config::{Config, Strategy, Topology};
use crate::transport::{Endpoint, Live, Node, Server};

/// Connects, and looks whether the servers are fit to vote.
pub(crate) async fn connect(url: &str) -> Result<(Shared, Descriptor)> {
    let Config { topology, options } = Config::parse(url)?;
    let Topology::Independent(endpoints) = topology else {
        return Err(invalid(
            "not a RedLock URL; write redlock://HOST:PORT,HOST:PORT,HOST:PORT",
        ));
    };
    check_endpoints(&endpoints)?;
    if options.replicas > 0 || options.strategy != Strategy::Direct {
        return Err(invalid(
            "`replicas` and `strategy` are options of redis://; leave them away",
        ));
    }
    let max_lease = options.max_lease.unwrap_or(MAX_LEASE);
    let keys = Keys::new(options.prefix.clone());
    let hearing = Hearing::new(&keys.inbox());
    let scripts = Arc::new(Scripts::new());
    let roll = Roll::new(endpoints.len());
    let peers = endpoints.into_iter().enumerate().map(|(at, endpoint)| {
        let address = endpoint.to_string();
        let place = Place::new(endpoint, at, &roll, &options);
        Arc::new(Peer {
            address,
            node: Node::start(
                Arc::new(place),
                Arc::<Hearing>::clone(&hearing),
                options.settings(),
            ),
            keys: keys.clone(),
            scripts: Arc::clone(&scripts),
        })
    });
    let peers: Vec<Arc<Peer>> = peers.collect();
    let lives = meet(&peers, options.timeout).await?;
    let admission = Admission::new(peers, max_lease);
    admission.look().await;
    let seats = admission.peers.iter().map(|peer| {
        Arc::new(Seat {
            peer: Arc::clone(peer),
            admission: Arc::clone(&admission),
        }) as Arc<dyn Voter>
    });
    let council = Council::new(seats.collect());
    let mut descriptor = DESCRIPTOR.clone();
    descriptor.ttl = *descriptor.ttl.start()..=max_lease;
    if lives.len() == council.voters.len() && lives.iter().all(|live| is_durable(&live.server)) {
        descriptor.guarantee = Guarantee::DurableSingle;
        descriptor.fence = FenceClass::Durable;
    }
    let shared = Shared {
        council,
        admission,
        hearing,
    };
    Ok((shared, descriptor))
}

fn invalid(message: &str) -> Error {
    Error::new(ErrorKind::InvalidConfig, message).on(DRIVER)
}

fn check_endpoints(endpoints: &[Endpoint]) -> Result<()> {
    if endpoints.len() < 3 {
        return Err(invalid(
            "RedLock takes at least three servers, to outlive one; for one server write redis://",
        ));
    }
    if endpoints.len().is_multiple_of(2) {
        return Err(invalid(
            "an even number of servers outlives no more failures than one fewer; name 3, 5 or 7",
        ));
    }
    for (at, endpoint) in endpoints.iter().enumerate() {
        if let Some(twin) = endpoints[..at]
            .iter()
            .position(|other| other.address == endpoint.address)
        {
            let message = "a server is named twice, so its vote would count twice; name each once";
            return Err(invalid(message).with("addresses", format!("{} and {}", twin + 1, at + 1)));
        }
    }
    Ok(())
}

/// Waits until each server was met or could not be; a majority must be there.
async fn meet(peers: &[Arc<Peer>], timeout: Duration) -> Result<Vec<Arc<Live>>> {
    let settled = join_all(peers.iter().map(|peer| peer.node.settled()));
    // A server that swallows what it is sent is no reason to wait longer.
    let _ = tokio::time::timeout(timeout + timeout / 4, settled).await;
    let mut errors = Vec::new();
    let mut lives = Vec::new();
    for peer in peers {
        match peer.node.if_up() {
            Some(live) => lives.push(live),
            None => errors.extend(peer.node.refusal().map(|why| peer.named(&why))),
        }
    }
    // A mistake in the URL is one even if the other servers are a majority.
    let is_wrong = |error: &Error| error.kind() == ErrorKind::InvalidConfig;
    if let Some(wrong) = errors.iter().position(is_wrong) {
        return Err(errors.swap_remove(wrong));
    }
    if lives.len() > peers.len() / 2 {
        return Ok(lives);
    }
    let first = errors.into_iter().next();
    let kind = first.as_ref().map_or(ErrorKind::Unavailable, Error::kind);
    let mut error = Error::new(kind, "a majority of the servers has to be up to begin with")
        .on(DRIVER)
        .with("up", format!("{} of {}", lives.len(), peers.len()));
    if let Some(first) = first {
        error = error.because(first);
    }
    Err(error)
}

/// Whether it has everything that it ever confirmed on its disk.
pub(super) fn is_durable(server: &Server) -> bool {
    server.info("aof_enabled") == Some("1") && server.appendfsync.as_deref() == Some("always")
}
