//! A connection that is up, with a bound on every request.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lockkit_core::{AttemptId, TimeLimit};

use super::handshake::reign;
use super::link::{Doubt, Unanswered};
use super::{Failure, Reply, Request, Server, Transport};
use crate::error::translated;
use crate::key::Bucket;
use crate::script::{Script, Text};

/// The letters of a master's name in messages.
const NAME: usize = 8;

/// How often a script is sent again to a server that forgets it at once.
const LOADS: usize = 5;

/// A connection that is up.
pub(crate) struct Live {
    transport: Arc<dyn Transport>,
    pub(crate) server: Server,
    knows_script_flags: bool,
    limit: TimeLimit,
    doubt: Arc<Doubt>,
    /// The buckets whose fences are known to be above all that an earlier server process gave.
    confirmed: [AtomicU64; 4],
}

impl Live {
    pub(super) fn new(
        transport: Arc<dyn Transport>,
        server: Server,
        limit: Duration,
        doubt: Arc<Doubt>,
    ) -> Self {
        Self {
            transport,
            knows_script_flags: server.knows_script_flags(),
            server,
            limit: TimeLimit::new(limit),
            doubt,
            confirmed: Default::default(),
        }
    }

    /// One request, one answer, within the time limit.
    pub(crate) async fn send(&self, request: &Request) -> Result<Reply, Failure> {
        self.bounded(self.transport.send(request)).await
    }

    /// Several requests in one go.
    pub(crate) async fn send_all(
        &self,
        requests: &[Request],
    ) -> Result<Vec<Result<Reply, Failure>>, Failure> {
        self.bounded(self.transport.send_all(requests)).await
    }

    /// Whether there is an answer, and from a server that was a master all the time, where it says
    /// so.
    pub(super) async fn is_well(&self) -> bool {
        let question = if self.server.is_reign_told {
            Request::new("INFO").arg("replication")
        } else {
            Request::new("PING")
        };
        match self.send(&question).await {
            Ok(reply) if self.server.is_reign_told => {
                let info = reply.as_text().unwrap_or_default();
                let is_master = info.lines().any(|line| line.trim_end() == "role:master");
                is_master && reign(info) == Some(self.server.reign.as_str())
            }
            Ok(_) | Err(Failure::Refused { .. }) => true,
            Err(Failure::Broken(_) | Failure::Silent(_)) => false,
        }
    }

    /// What the server says of itself now.
    pub(crate) async fn ask_again(&self) -> lockkit_core::Result<Server> {
        let asked = self.limit.bound(Server::ask(&*self.transport)).await;
        asked.unwrap_or_else(|| Err(translated(self.silent())))
    }

    /// Hears a channel until the connection ends.
    pub(crate) async fn subscribe(&self, channel: &str, sharded: bool) -> Result<(), Failure> {
        self.bounded(self.transport.subscribe(channel, sharded))
            .await
    }

    /// Runs a script; `asking` after a cluster node has said `ASK`.
    ///
    /// A server that has forgotten the script gets it together with the call, in one round trip.
    pub(crate) async fn eval(&self, call: &Call<'_>, asking: bool) -> Result<Reply, Failure> {
        let text = call.script.text(self.knows_script_flags);
        let told = call.server.filter(|_| !self.is_confirmed(call.bucket));
        let request = self.call(text, call, told);
        let mut outcome = if asking {
            let all = [Request::new("ASKING"), request.clone()];
            Box::pin(self.last_of(&all)).await
        } else {
            self.send(&request).await
        };
        if outcome
            .as_ref()
            .is_err_and(|failure| failure.is("NOSCRIPT"))
        {
            // Boxed, so that the future of a call is as small as it can be.
            outcome = Box::pin(self.load_and_send(text, &request, asking)).await;
        }
        if outcome.is_ok() {
            if told.is_some() {
                self.confirm(call.bucket);
            }
            for arg in call.args {
                match arg {
                    Arg::Bytes(_) | Arg::Signed(..) => {}
                    Arg::Run => self.confirm(call.bucket),
                    Arg::RunOf(bucket) => self.confirm(*bucket),
                }
            }
        }
        outcome
    }

    /// Sends a script with a call of it, in one go.
    async fn load_and_send(
        &self,
        text: &Text,
        request: &Request,
        asking: bool,
    ) -> Result<Reply, Failure> {
        let mut all = vec![Request::new("SCRIPT LOAD").arg(&text.source)];
        all.extend(asking.then(|| Request::new("ASKING")));
        all.push(request.clone());
        let mut outcome = self.last_of(&all).await;
        for _ in 1..LOADS {
            match &outcome {
                Err(failure) if failure.is("NOSCRIPT") => outcome = self.last_of(&all).await,
                _ => break,
            }
        }
        outcome
    }

    /// The command that calls a script; `told` is the key for the name of this master, which is told
    /// then.
    fn call(&self, text: &Text, call: &Call<'_>, told: Option<&str>) -> Request {
        let keys = call.keys.len() + usize::from(told.is_some());
        let mut request = Request::with_capacity(keys + call.args.len() + 4)
            .arg("EVALSHA")
            .arg(&text.sha)
            .number(keys)
            .args(call.keys)
            .args(told);
        for arg in call.args {
            request = match arg {
                Arg::Bytes(bytes) => request.arg(bytes),
                Arg::Run => request.arg(self.run_for(call.bucket)),
                Arg::RunOf(bucket) => request.arg(self.run_for(*bucket)),
                Arg::Signed(before, after) => {
                    let reign = self.server.reign.as_bytes();
                    let name = &reign[..reign.len().min(NAME)];
                    request.arg([*before, name, *after].concat())
                }
            };
        }
        request.args(told.map(|_| &self.server.reign))
    }

    /// The last answer. If that is a refusal, the reason is the first one, such as a missing right to
    /// load a script that is then not there.
    async fn last_of(&self, requests: &[Request]) -> Result<Reply, Failure> {
        let missing = || Failure::Broken("fewer answers than requests".into());
        let mut answers = self.send_all(requests).await?;
        let last = answers.pop().ok_or_else(missing)?;
        last.map_err(|failure| answers.into_iter().find_map(Result::err).unwrap_or(failure))
    }

    async fn bounded<T>(
        &self,
        call: impl Future<Output = Result<T, Failure>> + Send,
    ) -> Result<T, Failure> {
        let unanswered = Unanswered::new(&self.doubt, self.limit.get());
        let outcome = self.limit.bound(call).await;
        let outcome = outcome.unwrap_or_else(|| Err(self.silent()));
        unanswered.ended();
        if let Err(failure) = &outcome {
            self.doubt.about(failure);
        }
        outcome
    }

    fn silent(&self) -> Failure {
        Failure::Silent(self.limit.get().as_millis().try_into().unwrap_or(u64::MAX))
    }

    /// What a script that may issue a fence has to be told about the server: nothing, once it was
    /// told; see `mutex_hand_over.lua`.
    fn run_for(&self, bucket: Bucket) -> &str {
        if self.is_confirmed(bucket) {
            ""
        } else {
            &self.server.reign
        }
    }

    /// Whether this connection has vouched for the fences of a bucket.
    pub(crate) fn is_confirmed(&self, bucket: Bucket) -> bool {
        let (word, bit) = bucket.bit();
        self.confirmed[word].load(Ordering::Relaxed) & bit != 0
    }

    fn confirm(&self, bucket: Bucket) {
        let (word, bit) = bucket.bit();
        self.confirmed[word].fetch_or(bit, Ordering::Relaxed);
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live")
            .field("version", &self.server.version)
            .finish_non_exhaustive()
    }
}

/// A call of a script.
pub(crate) struct Call<'a> {
    pub(crate) script: &'a Script,
    /// Where its keys are.
    pub(crate) bucket: Bucket,
    pub(crate) keys: &'a [String],
    pub(crate) args: &'a [Arg<'a>],
    /// The key under which the name of the master is kept that issued the last fence of the bucket. It
    /// comes as the last key, and the name of this master as the last argument, as long as that
    /// has to be told.
    pub(crate) server: Option<&'a str>,
}

/// An argument of a script.
#[derive(Clone, Copy)]
pub(crate) enum Arg<'a> {
    Bytes(&'a [u8]),
    /// Which server process this is, as long as it has to be told.
    Run,
    /// The same for another bucket than that of the call.
    RunOf(Bucket),
    /// Two texts with the first letters of the name of this master between them, by which a client
    /// tells whether a message comes from the master that it listens to.
    Signed(&'a [u8], &'a [u8]),
}

impl<'a> From<&'a str> for Arg<'a> {
    fn from(text: &'a str) -> Self {
        Self::Bytes(text.as_bytes())
    }
}

impl<'a> From<&'a String> for Arg<'a> {
    fn from(text: &'a String) -> Self {
        Self::Bytes(text.as_bytes())
    }
}

impl<'a> From<&'a AttemptId> for Arg<'a> {
    fn from(attempt: &'a AttemptId) -> Self {
        Self::Bytes(attempt.as_bytes())
    }
}
