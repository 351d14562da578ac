//! The watchdog's calls to the backend, each bounded in time.

use std::sync::Arc;
use std::time::Duration;

use super::Watchdog;
use super::releases::Release;
use super::table::{Tenant, next_beat};
use crate::hold::LossReason;
use crate::{ErrorKind, HoldId, Renewal, valid_until};

impl Watchdog {
    /// Renews a batch and moves each row by its answer.
    pub(super) async fn renew(self: Arc<Self>, batch: Vec<(HoldId, Duration)>) {
        let (ids, ttls): (Vec<HoldId>, Vec<Duration>) = batch.into_iter().unzip();
        let shortest = ttls.iter().min().copied().unwrap_or_default();
        // An answer that takes longer than this is as good as none: the next try has begun.
        let limit = self.call_timeout.min(shortest / 3);
        let Ok(answers) = tokio::time::timeout(limit, self.backend.renew(&ids)).await else {
            return;
        };
        let now = self.clock.now();
        let mut table = self.table();
        for ((id, asked), answer) in ids.iter().zip(ttls).zip(answers) {
            let attempt = id.attempt();
            match (answer, table.tenant(attempt)) {
                (_, None) => {}
                (Renewal::Renewed { sent_at, ttl }, Some(tenant)) => {
                    if let Tenant::Hold(hold) = tenant {
                        hold.extend(valid_until(sent_at, ttl));
                    }
                    table.update(attempt, |row| row.renew_at = Some(next_beat(sent_at, ttl)));
                }
                (Renewal::Gone, Some(Tenant::Hold(hold))) => {
                    hold.lose(LossReason::Gone);
                    table.remove(attempt);
                }
                (Renewal::Gone, Some(Tenant::Place(_, gone))) => gone.notify_one(),
                // Unknown neither extends nor ends: the old deadline runs on, and the next try
                // comes sooner.
                (Renewal::Unknown(_), Some(_)) => {
                    table.update(attempt, |row| row.renew_at = Some(now + asked / 12));
                }
            }
        }
    }

    /// Sends a batch of releases; what is not answered goes again later.
    pub(super) async fn release(self: Arc<Self>, batch: Vec<Release>) {
        let ids: Vec<HoldId> = batch.iter().map(|release| release.id.clone()).collect();
        let backend = Arc::clone(&self.backend);
        // In a task of its own, because a release is never dropped half-way, not even by our
        // time limit.
        let call = tokio::spawn(async move { backend.release(&ids).await });
        let answers = match tokio::time::timeout(self.call_timeout, call).await {
            Ok(Ok(answers)) => answers,
            Ok(Err(_)) | Err(_) => Vec::new(),
        };
        let mut answers = answers.into_iter();
        let now = self.clock.now();
        let mut table = self.table();
        for release in batch {
            // Only silence is worth another try; a refusal stays one until the lease runs out.
            let answered = match answers.next() {
                Some(Ok(_)) => true,
                Some(Err(error)) => error.kind() == ErrorKind::Closed,
                None => false,
            };
            table.releases.settle(release, answered, now);
        }
        let drained = table.releases.outstanding() == 0;
        drop(table);
        if drained {
            self.drained.notify_waiters();
        }
    }

    /// Queues the release of a hold or a place in line, from any thread, with or without a
    /// runtime. The task sends it.
    pub(crate) fn release_later(&self, id: HoldId, ttl: Duration) {
        let mut table = self.table();
        table.remove(id.attempt());
        let now = self.clock.now();
        table.releases.push(id, now, ttl);
        drop(table);
        self.wake.notify_one();
    }

    /// Lets nobody in any more, tells every hold that it is lost, and queues its release.
    pub(crate) fn close(&self) {
        let now = self.clock.now();
        let mut table = self.table();
        table.releases.hurry(now);
        for row in table.close() {
            let id = row.tenant.id().clone();
            // A waiter withdraws by itself: it may be in the middle of an attempt.
            if let Tenant::Hold(_) = row.tenant {
                table.releases.push(id, now, row.ttl);
            }
        }
        drop(table);
        self.wake.notify_one();
    }

    /// Waits until every queued release was answered or given up; how many were given up.
    pub(crate) async fn drained(&self) -> usize {
        loop {
            let drained = self.drained.notified();
            tokio::pin!(drained);
            drained.as_mut().enable();
            {
                let table = self.table();
                if table.releases.outstanding() == 0 {
                    return table.releases.abandoned();
                }
            }
            drained.await;
        }
    }
}
