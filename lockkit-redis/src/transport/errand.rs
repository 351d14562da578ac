//! What is to be done where the keys of a bucket are.

use super::{Call, Failure, Live, Reply, Request};
use crate::key::Bucket;

/// Something to be done on whichever server has a bucket.
pub(crate) enum Errand<'a> {
    /// A script.
    Script(&'a Call<'a>),
    /// One command.
    Command(Bucket, &'a Request),
    /// Several commands that depend on what is there.
    Transaction(&'a Transaction<'a>),
}

impl Errand<'_> {
    /// Where its keys are.
    pub(super) const fn bucket(&self) -> Bucket {
        match self {
            Self::Script(call) => call.bucket,
            Self::Command(bucket, _) => *bucket,
            Self::Transaction(transaction) => transaction.bucket,
        }
    }

    /// Does it on a connection; `asking` after a cluster node has said `ASK`.
    pub(super) async fn run(&self, live: &Live, asking: bool) -> Result<Reply, Failure> {
        match self {
            Self::Script(call) => live.eval(call, asking).await,
            Self::Command(_, request) if asking => {
                let requests = [Request::new("ASKING"), (*request).clone()];
                last(&live.send_all(&requests).await?)
            }
            Self::Command(_, request) => live.send(request).await,
            Self::Transaction(transaction) => transaction.run(live, asking).await,
        }
    }
}

/// A change of keys that takes effect only if nobody else changed them since they were read.
pub(crate) struct Transaction<'a> {
    /// Where its keys are.
    pub(crate) bucket: Bucket,
    pub(crate) keys: &'a [String],
    /// What to do about a key, by its place in `keys`, that has this value. Not asked about a key
    /// that is not there.
    pub(crate) step: &'a (dyn Fn(usize, &[u8]) -> Option<Step> + Send + Sync),
}

/// One command of a transaction.
pub(crate) struct Step {
    pub(crate) request: Request,
    /// What is answered for the key if the command had an effect.
    pub(crate) answer: i64,
}

impl Transaction<'_> {
    /// An answer for each key, 0 where there was nothing to do; `Nil` if somebody else changed one
    /// meanwhile.
    ///
    /// What is watched belongs to the connection, which nobody else may use until this has ended. If
    /// it is dropped in between, the next one begins by forgetting it.
    async fn run(&self, live: &Live, asking: bool) -> Result<Reply, Failure> {
        let ask = || asking.then(|| Request::new("ASKING"));
        let mut looks = vec![Request::new("UNWATCH")];
        looks.extend(ask());
        looks.push(Request::new("WATCH").args(self.keys));
        for key in self.keys {
            looks.extend(ask());
            looks.push(Request::new("GET").arg(key));
        }
        let mut seen = live.send_all(&looks).await?.into_iter();
        // Not needed unless an earlier one was dropped, so it does not matter if it is refused.
        let _ = seen.next();
        let seen: Vec<Reply> = seen.collect::<Result<_, _>>()?;
        // Each request may have an answer to `ASKING` before its own; the first is that of `WATCH`.
        let values = seen.chunks_exact(1 + usize::from(asking)).skip(1);
        let values = values.filter_map(<[Reply]>::last).enumerate();
        let steps: Vec<Option<Step>> = values
            .map(|(at, value)| (self.step)(at, value.as_bytes()?))
            .collect();
        let mut requests: Vec<Request> = ask().into_iter().collect();
        requests.push(Request::new("MULTI"));
        requests.extend(steps.iter().flatten().map(|step| step.request.clone()));
        requests.push(Request::new("EXEC"));
        let done = if steps.iter().any(Option::is_some) {
            last(&live.send_all(&requests).await?)?
        } else {
            Reply::Array(Vec::new())
        };
        let Some(done) = done.as_array() else {
            return Ok(Reply::Nil);
        };
        let mut done = done.iter();
        let answers = steps.iter().map(|step| match step {
            Some(step) if done.next() != Some(&Reply::Int(0)) => Reply::Int(step.answer),
            Some(_) | None => Reply::Int(0),
        });
        Ok(Reply::Array(answers.collect()))
    }
}

/// The last answer, unless one before it is a refusal, which then is the reason.
fn last(answers: &[Result<Reply, Failure>]) -> Result<Reply, Failure> {
    if let Some(Err(failure)) = answers.iter().find(|answer| answer.is_err()) {
        return Err(failure.clone());
    }
    let missing = || Err(Failure::Broken("fewer answers than requests".into()));
    answers.last().cloned().unwrap_or_else(missing)
}
