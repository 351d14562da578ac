//! From a URL to a connected backend.

use std::sync::Arc;

use lockkit_core::{Descriptor, Error, FenceClass, Guarantee, Result};
use tokio::runtime::Handle;

use crate::config::{Config, Options, Strategy, Topology, invalid};
use crate::contention::Contention;
use crate::descriptor::DESCRIPTOR;
use crate::gather::Gather;
use crate::inbox::Inbox;
use crate::key::Prefix;
use crate::scripts::Scripts;
use crate::shared::Shared;
use crate::transport::{Cluster, Fixed, Locate, Node, Route, Sentinels, Server};

/// Connects, and looks whether the server is fit for locks.
pub(crate) async fn connect(config: Config) -> Result<(Shared, Descriptor)> {
    if config.options.strategy == Strategy::Simple {
        let message = "`strategy=simple` is a backend of its own; connect by `lockkit_redis::connect` \
                       or `Simple::connect`, or leave it away";
        return Err(invalid(message));
    }
    open(config).await
}

/// The same for any strategy.
pub(crate) async fn open(config: Config) -> Result<(Shared, Descriptor)> {
    let Config { topology, options } = config;
    let prefix = Prefix::new(options.prefix.clone());
    let (route, inbox) = match topology {
        Topology::Single(endpoint) => one(Arc::new(Fixed(endpoint)), &prefix, &options).await?,
        Topology::Sentinel {
            sentinels,
            service,
            master,
        } => {
            let settings = options.settings();
            let locate = Sentinels::new(sentinels, service, master, settings);
            one(Arc::new(locate), &prefix, &options).await?
        }
        Topology::Cluster(seeds) => {
            let inbox = Arc::new(Inbox::new(|_| None));
            let ears = Arc::<Inbox>::clone(&inbox);
            let settings = options.settings();
            let client = inbox.client();
            let cluster = Cluster::open(seeds, prefix.clone(), ears, client, settings).await?;
            (Route::Several(cluster), inbox)
        }
        Topology::Independent(_) => {
            let message = "redlock:// is a backend of its own; connect with Redlock::connect";
            return Err(invalid(message));
        }
    };
    let mut descriptor = DESCRIPTOR.clone();
    for live in route.all().await? {
        check_eviction(&live.server, &options)?;
        if route.is_one()
            && let Some(guarantee) = guarantee(&live.server)
        {
            descriptor.guarantee = guarantee;
            descriptor.fence = FenceClass::Durable;
        }
    }
    let shared = Shared {
        scripts: Scripts::new(!route.is_one()),
        route,
        prefix,
        inbox,
        options,
        contention: Contention::new(),
        takes: Gather::new(Handle::current()),
        leaves: Gather::new(Handle::current()),
    };
    Ok((shared, descriptor))
}

async fn one(
    locate: Arc<dyn Locate>,
    prefix: &Prefix,
    options: &Options,
) -> Result<(Route, Arc<Inbox>)> {
    let hears = options.strategy == Strategy::Direct;
    let channel = |client: &str| hears.then(|| prefix.inbox(None, client));
    let inbox = Arc::new(Inbox::new(channel));
    let node = Node::open(locate, Arc::<Inbox>::clone(&inbox), options.settings()).await?;
    Ok((Route::One(Box::new(node)), inbox))
}

/// A server that throws keys away when its memory is full throws locks away first: they are the keys
/// with an expiry.
pub(crate) fn check_eviction(server: &Server, options: &Options) -> Result<()> {
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

/// How far a server can be relied on; `None` if no more than any: what it has confirmed is on its disk,
/// and nobody else can take over with less.
fn guarantee(server: &Server) -> Option<Guarantee> {
    let durable = server.info("aof_enabled") == Some("1")
        && server.appendfsync.as_deref() == Some("always")
        && server.info("connected_slaves") == Some("0")
        && !server.is_cluster;
    durable.then_some(Guarantee::DurableSingle)
}
