//! From a URL to a connected backend.

use std::sync::Arc;

use lockkit_core::{Descriptor, Error, Guarantee, Result};

use crate::config::{Config, Options, Topology, invalid};
use crate::descriptor::DESCRIPTOR;
use crate::inbox::Inbox;
use crate::key::Prefix;
use crate::scripts::Scripts;
use crate::shared::Shared;
use crate::transport::{Endpoint, Fixed, Lane, Node, Route, Server};

/// Connects, and looks whether the server is fit for locks.
pub(crate) async fn connect(config: Config) -> Result<(Shared, Descriptor)> {
    let Config { topology, options } = config;
    let prefix = Prefix::new(options.prefix.clone());
    let (route, inbox) = match topology {
        Topology::Single(endpoint) => single(endpoint, &prefix, &options).await?,
        Topology::Sentinel { .. } | Topology::Cluster(_) => {
            return Err(invalid("not yet"));
        }
    };
    let mut descriptor = DESCRIPTOR.clone();
    for live in route.all().await? {
        check_eviction(&live.server, &options)?;
        if let Some(guarantee) = guarantee(&live.server) {
            descriptor.guarantee = guarantee;
        }
    }
    let shared = Shared {
        scripts: Scripts::new(!route.is_one()),
        route,
        prefix,
        inbox,
        options,
    };
    Ok((shared, descriptor))
}

async fn single(
    endpoint: Endpoint,
    prefix: &Prefix,
    options: &Options,
) -> Result<(Route, Arc<Inbox>)> {
    let inbox = Arc::new(Inbox::new(|client| Some(prefix.inbox(None, client))));
    let locate = Arc::new(Fixed(endpoint));
    let node = Node::open(locate, Arc::<Inbox>::clone(&inbox), options.settings()).await?;
    Ok((Route::One(node), inbox))
}

/// A server that throws keys away when its memory is full throws locks away first: they are the keys
/// with an expiry.
fn check_eviction(server: &Server, options: &Options) -> Result<()> {
    let policy = server.info("maxmemory_policy").unwrap_or("noeviction");
    let limited = server.info("maxmemory").is_some_and(|most| most != "0");
    if options.allow_eviction || !limited || policy == "noeviction" {
        return Ok(());
    }
    let error: Error = invalid(
        "this server throws keys away when its memory is full, and locks among the first; set its \
         `maxmemory-policy` to noeviction, use another server, or write `allow_eviction=true`",
    );
    Err(error.with("maxmemory-policy", policy))
}

/// How far a server can be relied on; `None` if it is the least.
fn guarantee(_server: &Server) -> Option<Guarantee> {
    let _ = Lane::Work;
    None
}
