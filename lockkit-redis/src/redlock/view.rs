//! What the nodes know, taken together.

use std::time::Duration;

use futures_util::future::try_join_all;
use lockkit_core::{Error, Fence, Resource, Result, Snapshot};

use super::council::Council;
use super::record::holder;
use super::voter::{Known, Record};

impl Council {
    /// Who holds a name by the word of a majority; or may hold it, where too few nodes can be
    /// asked to tell.
    pub(crate) async fn inspect(&self, resource: &Resource) -> Result<Snapshot> {
        let mut answers = self.ask(|voter| {
            let resource = resource.clone();
            async move { voter.inspect(&resource).await }
        });
        let mut known: Vec<Known> = Vec::new();
        let mut errors: Vec<Error> = Vec::new();
        while let Some((_, answer)) = answers.recv().await {
            match answer {
                Ok(answer) => known.push(answer),
                Err(error) => errors.push(error),
            }
            let silent = self.voters.len() - known.len() - errors.len();
            let (most, _) = strongest(&known);
            let decided = most >= self.majority() || most + silent + errors.len() < self.majority();
            if known.len() >= self.majority() && decided {
                break;
            }
        }
        if known.len() < self.majority() {
            return Err(self.absent(errors));
        }
        let highest = known.iter().map(|known| known.counter).max().unwrap_or(0);
        let mut snapshot =
            Snapshot::idle(resource.clone(), (highest > 0).then(|| Fence::new(highest)));
        let absent = self.voters.len() - known.len();
        if let (votes, Some(record)) = strongest(&known)
            && votes + absent >= self.majority()
        {
            snapshot.holders.extend(holder(resource, record));
        }
        Ok(snapshot)
    }

    /// The same for every name that is held and begins so.
    pub(crate) async fn list(&self, prefix: &str) -> Result<Vec<Snapshot>> {
        let mut answers = self.ask(|voter| async move { voter.names().await });
        let mut found: Vec<Resource> = Vec::new();
        let (mut heard, mut errors) = (0, Vec::new());
        // A hold is on a majority, so a majority knows all of them.
        while heard < self.majority()
            && let Some((_, answer)) = answers.recv().await
        {
            match answer {
                Ok(names) => {
                    heard += 1;
                    let fitting = |name: &Resource| name.name().as_str().starts_with(prefix);
                    found.extend(names.into_iter().filter(fitting));
                }
                Err(error) => errors.push(error),
            }
        }
        if heard < self.majority() {
            return Err(self.absent(errors));
        }
        found.sort();
        found.dedup();
        let mut snapshots = Vec::with_capacity(found.len());
        for some in found.chunks(64) {
            snapshots.extend(try_join_all(some.iter().map(|name| self.inspect(name))).await?);
        }
        snapshots.retain(|snapshot| !snapshot.is_idle());
        Ok(snapshots)
    }
}

/// The confirmed hold that most nodes have, and how many.
fn strongest(known: &[Known]) -> (usize, Option<&Record>) {
    let holds = || {
        let holds = known.iter().filter_map(|known| known.hold.as_ref());
        holds.filter(|hold| hold.token > 0 && hold.remaining > Duration::ZERO)
    };
    let votes = |record: &Record| {
        let same =
            holds().filter(|other| (other.attempt, other.token) == (record.attempt, record.token));
        same.count()
    };
    let best = holds().max_by_key(|record| (votes(record), record.remaining));
    (best.map_or(0, votes), best)
}
