//! What a child process can be told to do.

use std::collections::HashMap;
use std::time::Duration;

use lockkit_core::{DistributedLock, ErrorKind, Guard, LockName, Locker, Unlocked};

use crate::{Failure, History, Outcome};

/// A child's client and its guards, by name.
pub(super) struct Orders {
    locker: Locker,
    guards: HashMap<LockName, Guard>,
}

impl Orders {
    pub(super) fn new(locker: Locker) -> Self {
        Self {
            locker,
            guards: HashMap::new(),
        }
    }

    /// Carries out one line and tells the answer.
    pub(super) async fn carry_out(&mut self, line: &str) -> Outcome<String> {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words[..] {
            ["try", name, ttl] => {
                let lock = self.locker.mutex(decoded(name)?).ttl(millis(ttl)?);
                self.lock(&lock.wait(Duration::ZERO)).await
            }
            ["unlock", name] => {
                let guard = self.guards.remove(&LockName::decode(name)?);
                match guard
                    .ok_or_else(|| Failure::new("not locked"))?
                    .unlock()
                    .await?
                {
                    Unlocked::Clean => Ok("clean".into()),
                    Unlocked::Lost(_) => Ok("lost".into()),
                }
            }
            ["is_held", name] => {
                let guard = self.guards.get(&LockName::decode(name)?);
                Ok(guard.is_some_and(Guard::is_held).to_string())
            }
            ["count", name, rounds, file] => {
                self.count(&decoded(name)?, rounds.parse()?, file).await
            }
            ["asked", name] => {
                let guard = self.guards.get(&LockName::decode(name)?);
                let guard = guard.ok_or_else(|| Failure::new("not locked"))?;
                guard.revocation_requested().await;
                Ok("asked".into())
            }
            ["down", name, participant] => {
                let latch = self.locker.latch(decoded(name)?);
                Ok(latch.count_down(participant).await?.to_string())
            }
            ["pass", name] => {
                self.locker.latch(decoded(name)?).wait().await?;
                Ok("passed".into())
            }
            [what, name, ttl, wait] => {
                let lock = self.wanted(what, decoded(name)?, millis(ttl)?, millis(wait)?)?;
                self.lock(&*lock).await
            }
            _ => Err(Failure::new(format!("not an order: {line}"))),
        }
    }

    /// What is to be locked: see [`Peer::begin`](crate::Peer::begin).
    fn wanted(
        &self,
        what: &str,
        name: String,
        ttl: Duration,
        wait: Duration,
    ) -> Outcome<Box<dyn DistributedLock>> {
        let words: Vec<&str> = what.split(':').collect();
        Ok(match words[..] {
            ["lock"] => Box::new(self.locker.mutex(name).ttl(ttl).wait(wait)),
            ["fair"] => Box::new(self.locker.mutex(name).ttl(ttl).wait(wait).fair()),
            ["read"] => Box::new(self.locker.read_write(name).ttl(ttl).wait(wait).read()),
            ["write"] => Box::new(self.locker.read_write(name).ttl(ttl).wait(wait).write()),
            ["permits", count, limit] => {
                let lock = self.locker.semaphore(name, limit.parse()?);
                Box::new(lock.permits(count.parse()?).ttl(ttl).wait(wait))
            }
            ["any", of] => Box::new(self.locker.segmented(name, of.parse()?).ttl(ttl).wait(wait)),
            _ => return Err(Failure::new(format!("nothing to lock: {what}"))),
        })
    }

    async fn lock(&mut self, lock: &dyn DistributedLock) -> Outcome<String> {
        match lock.lock().await {
            Ok(guard) => {
                let fence = guard.fence().to_string();
                self.guards.insert(guard.name().clone(), guard);
                Ok(fence)
            }
            Err(error) if error.kind() == ErrorKind::Timeout => Ok("busy".into()),
            Err(error) => Err(error.into()),
        }
    }

    async fn count(&self, name: &str, rounds: usize, file: &str) -> Outcome<String> {
        let history = History::new(self.locker.descriptor().clock);
        for _ in 0..rounds {
            let asked = history.now();
            let guard = self.locker.mutex(name).lock().await?;
            let open = history.held(asked);
            let seen: u64 = std::fs::read_to_string(file)?.trim().parse()?;
            tokio::time::sleep(Duration::from_millis(1)).await;
            std::fs::write(file, (seen + 1).to_string())?;
            history.ends(open, &guard);
            if guard.unlock().await? != Unlocked::Clean {
                return Err(Failure::new("lost while counting"));
            }
        }
        let spans: Vec<String> = history.spans().iter().map(crate::Span::encode).collect();
        Ok(spans.join(" "))
    }

    pub(super) async fn close(&self) -> Outcome {
        Ok(self.locker.close().await?)
    }
}

fn decoded(name: &str) -> Outcome<String> {
    Ok(LockName::decode(name)?.as_str().into())
}

fn millis(text: &str) -> Outcome<Duration> {
    Ok(Duration::from_millis(text.parse()?))
}
