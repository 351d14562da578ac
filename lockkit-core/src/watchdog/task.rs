//! The loop of the watchdog's task.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Watchdog;
use crate::Result;

/// The longest sleep while anything is held. Timers stand still while a machine is suspended, the
/// boot clock does not: after waking up, a loss is told within this time (and `is_held` is right
/// at once).
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

impl Watchdog {
    /// Runs until `stop`, then sends what is left to release and closes the backend.
    pub(crate) async fn run(self: Arc<Self>, stop: CancellationToken) -> Result<()> {
        // However the task ends, with its runtime or by a panic, nobody queues for it any more.
        let _over = Over(&self);
        let mut calls = JoinSet::new();
        loop {
            let now = self.clock.now();
            let (renewals, releases, planned) = {
                let mut table = self.table();
                table.expire(now);
                let renewals = table.take_due(now);
                let releases = table.releases.take_due(now);
                if stop.is_cancelled() && releases.is_empty() && table.releases.outstanding() == 0 {
                    table.releases.end();
                    break;
                }
                (renewals, releases, table.plan(now, LONGEST_SLEEP))
            };
            if !renewals.is_empty() {
                calls.spawn(Arc::clone(&self).renew(renewals));
            }
            if !releases.is_empty() {
                calls.spawn(Arc::clone(&self).release(releases));
            }
            let sleep = planned.map(|at| at.saturating_duration_since(now));
            tokio::select! {
                () = self.wake.notified() => {}
                () = sleep_for(sleep) => {}
                // A call that ended may have moved rows or queued a release again.
                Some(_) = calls.join_next(), if !calls.is_empty() => {}
                () = stop.cancelled(), if !stop.is_cancelled() => {}
            }
        }
        calls.abort_all();
        self.backend.close().await
    }
}

struct Over<'a>(&'a Watchdog);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.table().releases.end();
        self.0.drained.notify_waiters();
    }
}

async fn sleep_for(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}
