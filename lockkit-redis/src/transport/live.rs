//! A connection that is up, with a bound on every request.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lockkit_core::AttemptId;
use tokio::time::timeout;

use super::handshake::reign;
use super::link::{Doubt, Unanswered};
use super::{Failure, Reply, Request, Server, Transport};
use crate::error::translated;
use crate::key::Bucket;
use crate::script::Script;

/// How often a script is sent again to a server that forgets it at once.
const LOADS: usize = 5;

/// A connection that is up.
pub(crate) struct Live {
    transport: Arc<dyn Transport>,
    pub(crate) server: Server,
    limit: Duration,
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
            server,
            limit,
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
        let asked = timeout(self.limit, Server::ask(&*self.transport));
        let silent = || Failure::Silent(self.limit.as_millis().try_into().unwrap_or(u64::MAX));
        asked.await.unwrap_or_else(|_| Err(translated(silent())))
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
        let text = call.script.text(self.server.knows_script_flags());
        let mut request = Request::new("EVALSHA")
            .arg(&text.sha)
            .arg(call.keys.len().to_string())
            .args(call.keys);
        for arg in call.args {
            request = request.arg(match arg {
                Arg::Bytes(bytes) => bytes,
                Arg::Run => self.run_for(call.bucket).as_bytes(),
                Arg::RunOf(bucket) => self.run_for(*bucket).as_bytes(),
            });
        }
        let mut outcome = if asking {
            self.last_of(&[Request::new("ASKING"), request.clone()])
                .await
        } else {
            self.send(&request).await
        };
        for _ in 0..LOADS {
            match &outcome {
                Err(failure) if failure.is("NOSCRIPT") => {}
                _ => break,
            }
            let load = Request::new("SCRIPT LOAD").arg(&text.source);
            outcome = if asking {
                let all = [load, Request::new("ASKING"), request.clone()];
                self.last_of(&all).await
            } else {
                self.last_of(&[load, request.clone()]).await
            };
        }
        if outcome.is_ok() {
            for arg in call.args {
                match arg {
                    Arg::Bytes(_) => {}
                    Arg::Run => self.confirm(call.bucket),
                    Arg::RunOf(bucket) => self.confirm(*bucket),
                }
            }
        }
        outcome
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
        let unanswered = Unanswered::new(&self.doubt, self.limit);
        let outcome = timeout(self.limit, call).await.unwrap_or_else(|_| {
            let millis = self.limit.as_millis().try_into().unwrap_or(u64::MAX);
            Err(Failure::Silent(millis))
        });
        unanswered.ended();
        if let Err(failure) = &outcome {
            self.doubt.about(failure);
        }
        outcome
    }

    /// What a script that may issue a fence has to be told about the server: nothing, once it was
    /// told; see `mutex_hand_over.lua`.
    fn run_for(&self, bucket: Bucket) -> &str {
        let (word, bit) = bucket.bit();
        if self.confirmed[word].load(Ordering::Relaxed) & bit == 0 {
            &self.server.reign
        } else {
            ""
        }
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
}

/// An argument of a script.
#[derive(Clone, Copy)]
pub(crate) enum Arg<'a> {
    Bytes(&'a [u8]),
    /// Which server process this is, as long as it has to be told.
    Run,
    /// The same for another bucket than that of the call.
    RunOf(Bucket),
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
