//! The connections to one node.

use std::sync::Arc;
use std::time::Duration;

use lockkit_core::{Error, ErrorKind, Result};

use super::connect::is_durable;
use super::descriptor::DRIVER;
use super::keys::Keys;
use super::scripts::Scripts;
use crate::error::{odd, translated};
use crate::key::Bucket;
use crate::script::Script;
use crate::transport::{Arg, Call, Lane, Live, Node, Reply};

/// The counter of a node that is a floor for all buckets.
pub(crate) const FLOOR: &str = "floor";

/// One node.
#[derive(Debug)]
pub(crate) struct Peer {
    /// Where it is, for people.
    pub(crate) address: String,
    pub(crate) node: Node,
    pub(crate) keys: Keys,
    pub(crate) scripts: Arc<Scripts>,
}

/// How far a node can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    /// It has everything that it ever confirmed.
    Whole,
    /// It may have lost some.
    Older,
    None,
}

/// What a node says of itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    pub(crate) memory: Memory,
    /// Since when it is known to have lost its memory.
    pub(crate) waited: Duration,
    /// The longest lease of any client that ever asked.
    pub(crate) lease: Duration,
    /// Its wall clock in microseconds.
    pub(crate) clock: u64,
}

impl Peer {
    /// An error of this node, in the name of this backend.
    pub(crate) fn named(&self, error: &Error) -> Error {
        let mut named = Error::new(error.kind(), error.message()).on(DRIVER);
        for (key, value) in error.context() {
            named = named.with(key, value);
        }
        if error.context().all(|(key, _)| key != "server") {
            named = named.with("server", &self.address);
        }
        match std::error::Error::source(error) {
            Some(source) => named.because(source.to_string()),
            None => named,
        }
    }

    /// Runs a script; its first argument is the server process that the connection leads to.
    pub(crate) async fn eval(
        &self,
        lane: Lane,
        script: &Script,
        keys: &[String],
        args: &[Arg<'_>],
    ) -> Result<Reply> {
        let live = self.node.live(lane).await?;
        let mut with_run: Vec<Arg<'_>> = Vec::with_capacity(args.len() + 1);
        with_run.push((&live.server.run_id).into());
        with_run.extend_from_slice(args);
        Self::run(&live, script, keys, &with_run).await
    }

    /// The same for a script that works whatever the node remembers.
    pub(crate) async fn eval_always(
        &self,
        script: &Script,
        keys: &[String],
        args: &[Arg<'_>],
    ) -> Result<Reply> {
        let live = self.node.live(Lane::Work).await?;
        Self::run(&live, script, keys, args).await
    }

    async fn run(live: &Live, script: &Script, keys: &[String], args: &[Arg<'_>]) -> Result<Reply> {
        let call = Call {
            script,
            bucket: Bucket::default(), // There is no cluster to find a node of.
            keys,
            args,
            server: None,
        };
        live.eval(&call, false).await.map_err(translated)
    }

    /// Asks whether it may vote.
    pub(crate) async fn standing(&self, longest: Duration) -> Result<Standing> {
        let live = self.node.live(Lane::Work).await?;
        let longest = longest.as_millis().to_string();
        let durable = is_durable(&live.server);
        let args = [(&longest).into(), if durable { "1" } else { "" }.into()];
        let keys = [self.keys.node()];
        let reply = self
            .eval(Lane::Work, &self.scripts.join, &keys, &args)
            .await?;
        let numbers: Vec<u64> = numbers(&reply);
        let [state, waited, lease, clock] = numbers[..] else {
            return Err(odd("what it remembers"));
        };
        Ok(Standing {
            memory: match state {
                1 => Memory::Whole,
                2 => Memory::Older,
                _ => Memory::None,
            },
            waited: Duration::from_millis(waited),
            lease: Duration::from_millis(lease),
            clock,
        })
    }

    /// Its counters, as fields and values; `None` if it may not vote.
    pub(crate) async fn counters(&self) -> Result<Option<Vec<(String, u64)>>> {
        let script = &self.scripts.counters;
        let reply = self
            .eval(Lane::Work, script, &[self.keys.node()], &[])
            .await?;
        let fields = reply.as_array().ok_or_else(|| odd("its counters"))?;
        let counters = fields.chunks_exact(2).filter_map(|pair| {
            let field = pair[0].as_text()?;
            let counts = field == FLOOR || field.bytes().all(|byte| byte.is_ascii_digit());
            let counter = pair[1].as_text()?.parse().ok()?;
            counts.then(|| (field.to_owned(), counter))
        });
        Ok((!fields.is_empty()).then(|| counters.collect()))
    }

    /// Lets it vote, with counters that are at least these.
    pub(crate) async fn adopt(&self, counters: &[(String, u64)]) -> Result<()> {
        let texts: Vec<String> = counters
            .iter()
            .flat_map(|(field, counter)| [field.clone(), counter.to_string()])
            .collect();
        let args: Vec<Arg<'_>> = texts.iter().map(Arg::from).collect();
        let script = &self.scripts.adopt;
        self.eval(Lane::Work, script, &[self.keys.node()], &args)
            .await
            .map(drop)
    }
}

/// The numbers in a list.
pub(crate) fn numbers(reply: &Reply) -> Vec<u64> {
    let items = reply.as_array().unwrap_or_default();
    let numbers = items.iter().map(|item| item.as_int()?.try_into().ok());
    numbers.collect::<Option<_>>().unwrap_or_default()
}

/// A node that must not vote.
pub(crate) fn forgetful() -> Error {
    let message = "this server started anew and may have lost what it had confirmed; it votes again \
                   once a longest lease (`max_lease`) has passed";
    Error::new(ErrorKind::Unavailable, message).on(DRIVER)
}
