//! Connections to servers.
//!
//! [`Transport`] is one connection: requests and answers. [`Link`] keeps one to a server alive for
//! ever: it notices a dead or half-open one, connects again, follows a moved master, and tells
//! when it is back. [`Node`] is the links to one server, and [`Route`] finds the node of a bucket.

mod cluster;
mod driver;
mod endpoint;
mod errand;
mod handshake;
mod link;
mod live;
mod locate;
mod node;
mod request;
mod route;
mod sentinel;
mod slots;

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;

pub(crate) use cluster::Cluster;
pub(crate) use endpoint::{Address, Certificates, Endpoint, Login, Secret};
pub(crate) use errand::{Errand, Step, Transaction};
pub(crate) use handshake::Server;
pub(crate) use link::{Arrival, Ears, Link, Settings};
pub(crate) use live::{Arg, Call, Live};
pub(crate) use locate::{Fixed, Locate};
pub(crate) use node::{Lane, Node};
pub(crate) use request::{Failure, Push, Reply, Request};
pub(crate) use route::Route;
pub(crate) use sentinel::Sentinels;

/// Takes what a server says unasked. Called on the connection's own task: it must not block.
pub(crate) type Ear = Arc<dyn Fn(Push) + Send + Sync>;

/// One connection to one server.
///
/// Answers come in the order of the requests. A call that is dropped may take effect all the same.
#[async_trait]
pub(crate) trait Transport: Debug + Send + Sync {
    /// One request, one answer.
    async fn send(&self, request: &Request) -> Result<Reply, Failure>;

    /// Several requests in one go, an answer for each; others may come between.
    async fn send_all(&self, requests: &[Request]) -> Result<Vec<Result<Reply, Failure>>, Failure>;

    /// Hears a channel from now on; `sharded` as in `SSUBSCRIBE`.
    async fn subscribe(&self, channel: &str, sharded: bool) -> Result<(), Failure>;
}
