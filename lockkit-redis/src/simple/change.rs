//! Changes of what is held, by its owner only.
//!
//! By a script where the server lets this client run one. Where it does not, by `WATCH`, `GET` and
//! `MULTI`, which is two round trips on a connection that one task uses at a time.

use std::sync::atomic::{AtomicBool, Ordering};

use lockkit_core::{AttemptId, Error, ErrorKind, HoldId, Result};

use super::descriptor::DRIVER;
use super::record::Record;
use crate::error::{odd, translated};
use crate::renew::Lease;
use crate::script::Script;
use crate::shared::Shared;
use crate::transport::{Arg, Call, Errand, Failure, Lane, Reply, Request, Step, Transaction};

/// How often a transaction is tried again after somebody else changed one of its keys meanwhile.
const RETRIES: usize = 5;

/// What to do with a hold. The answer is as the script gives it: 0 if there is none.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    /// To keep it for another lease. Answers the lease in milliseconds.
    Renew,
    /// To give it an expiry of its own, so many milliseconds from now. Answers the same.
    Extend(u64),
    /// To let it go. Answers 1.
    Release,
}

impl Change {
    /// The command for a hold, in a transaction.
    fn step(self, key: &str, held: &Record<'_>) -> Step {
        match self {
            Self::Renew => Step {
                request: Request::new("PEXPIRE").arg(key).arg(held.ttl.to_string()),
                answer: answer(held.ttl),
            },
            Self::Extend(ttl) => Step {
                request: Request::new("SET")
                    .arg(key)
                    .arg(held.detached(ttl))
                    .arg("PX")
                    .arg(ttl.to_string()),
                answer: answer(ttl),
            },
            Self::Release => Step {
                request: Request::new("DEL").arg(key),
                answer: 1,
            },
        }
    }
}

fn answer(ttl: u64) -> i64 {
    i64::try_from(ttl).unwrap_or(i64::MAX)
}

/// Who changes holds, and how.
#[derive(Debug)]
pub(super) struct Changes {
    release: Script,
    /// The server has run a script.
    with_scripts: AtomicBool,
    /// It has refused to.
    without_scripts: AtomicBool,
}

impl Changes {
    pub(super) fn new() -> Self {
        let release = include_str!("../lua/simple_release.lua");
        Self {
            release: Script::new("allow-oom", &[release]),
            with_scripts: AtomicBool::new(false),
            without_scripts: AtomicBool::new(false),
        }
    }

    pub(super) fn by_scripts(&self) -> bool {
        !self.without_scripts.load(Ordering::Relaxed)
    }

    /// Changes holds whose keys are in one bucket, in one step; an answer for each. Only a renewal
    /// may be of several.
    pub(super) async fn make(
        &self,
        shared: &Shared,
        lane: Lane,
        change: Change,
        ids: &[&HoldId],
    ) -> Result<Vec<Lease>> {
        if self.may_run_scripts(shared, lane, ids[0]).await? {
            match self.by_script(shared, lane, change, ids).await? {
                Ok(reply) => return answers(&reply, ids.len()),
                Err(failure) if refuses_scripts(&failure) => {
                    self.without_scripts.store(true, Ordering::Relaxed);
                }
                Err(failure) => return Err(translated(failure)),
            }
        }
        by_transaction(shared, lane, change, ids).await
    }

    /// Finds out by a script that does nothing. A server that does not know a command answers with
    /// the arguments, and an attempt is not text, which the client library takes for a broken
    /// connection; these arguments are.
    async fn may_run_scripts(&self, shared: &Shared, lane: Lane, id: &HoldId) -> Result<bool> {
        if !self.by_scripts() || self.with_scripts.load(Ordering::Relaxed) {
            return Ok(self.by_scripts());
        }
        let nobody = [Arg::from("nobody")];
        let script = &self.release;
        match run(shared, lane, script, &[id], &nobody).await? {
            Ok(_) => self.with_scripts.store(true, Ordering::Relaxed),
            Err(failure) if refuses_scripts(&failure) => {
                self.without_scripts.store(true, Ordering::Relaxed);
            }
            Err(failure) => return Err(translated(failure)),
        }
        Ok(self.by_scripts())
    }

    async fn by_script(
        &self,
        shared: &Shared,
        lane: Lane,
        change: Change,
        ids: &[&HoldId],
    ) -> Result<Result<Reply, Failure>> {
        let attempts: Vec<AttemptId> = ids.iter().map(|id| id.attempt()).collect();
        let mut args: Vec<Arg<'_>> = attempts.iter().map(Arg::from).collect();
        let ttl;
        let script = match change {
            Change::Renew => &shared.scripts.mutex_renew,
            Change::Extend(millis) => {
                ttl = millis.to_string();
                args.push((&ttl).into());
                &shared.scripts.mutex_extend
            }
            Change::Release => &self.release,
        };
        run(shared, lane, script, ids, &args).await
    }
}

async fn run(
    shared: &Shared,
    lane: Lane,
    script: &Script,
    ids: &[&HoldId],
    args: &[Arg<'_>],
) -> Result<Result<Reply, Failure>> {
    let call = Call {
        script,
        bucket: shared.prefix.keys(ids[0].resource()).bucket,
        keys: &keys(shared, ids),
        args,
        server: None,
    };
    shared.route.run(lane, &Errand::Script(&call)).await
}

async fn by_transaction(
    shared: &Shared,
    lane: Lane,
    change: Change,
    ids: &[&HoldId],
) -> Result<Vec<Lease>> {
    let keys = keys(shared, ids);
    let transaction = Transaction {
        bucket: shared.prefix.keys(ids[0].resource()).bucket,
        keys: &keys,
        step: &|at, value| {
            let held = Record::parse(value)?;
            (held.attempt == ids[at].attempt()).then(|| change.step(&keys[at], &held))
        },
    };
    for _ in 0..RETRIES {
        let errand = Errand::Transaction(&transaction);
        match shared.route.run(lane, &errand).await?.map_err(translated)? {
            Reply::Nil => {}
            reply => return answers(&reply, ids.len()),
        }
    }
    let message = "somebody else changes this key all the time; use another `prefix`";
    Err(Error::new(ErrorKind::Unavailable, message).on(DRIVER))
}

fn keys(shared: &Shared, ids: &[&HoldId]) -> Vec<String> {
    let key = |id: &&HoldId| shared.prefix.keys(id.resource()).main();
    ids.iter().map(key).collect()
}

fn answers(reply: &Reply, count: usize) -> Result<Vec<Lease>> {
    let answers: Option<Vec<Lease>> = match reply {
        Reply::Array(answers) => answers.iter().map(Lease::read).collect(),
        single => Lease::read(single).map(|answer| vec![answer]),
    };
    let complete = answers.filter(|answers| answers.len() == count);
    complete.ok_or_else(|| odd("a change of a hold"))
}

/// Whether a server lets this client run no scripts, as opposed to whatever else may be wrong: no
/// right, commands under other names, or a script that was sent and is not there.
fn refuses_scripts(failure: &Failure) -> bool {
    let Failure::Refused { code, detail } = failure else {
        return false;
    };
    let detail = detail.to_ascii_lowercase();
    match code.as_str() {
        "NOSCRIPT" => true,
        "NOPERM" => detail.contains("'evalsha") || detail.contains("'script"),
        "ERR" => detail.starts_with("unknown command"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_refusal_of_scripts_is_one() {
        let refused = |code: &str, detail: &str| {
            refuses_scripts(&Failure::Refused {
                code: code.into(),
                detail: detail.into(),
            })
        };
        let may_not = "this user has no permissions to run the";
        assert!(refused("NOPERM", &format!("{may_not} 'evalsha' command")));
        assert!(refused("ERR", "unknown command 'EVALSHA', with args"));
        assert!(refused("NOSCRIPT", "No matching script"));
        assert!(!refused("NOPERM", &format!("{may_not} 'get' command")));
        assert!(!refused("NOPERM", "No permissions to access a key"));
        assert!(!refused("OOM", "command not allowed"));
        assert!(!refuses_scripts(&Failure::Silent(1)));
    }
}
