//! The loop of the watchdog's task.

use std::sync::Arc;
use std::time::Duration;

use foldhash::HashMap;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Watchdog;
use super::releases::End;
use super::table::Due;
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
            // Looked at once: a stop between two looks would wake nobody.
            let stopping = stop.is_cancelled();
            let (expired, renewals, releases, planned) = {
                let mut table = self.table();
                let expired = table.expire(now);
                let renewals = table.take_due(now);
                let releases = table.releases.take_due(now);
                if stopping && table.releases.outstanding() == 0 {
                    table.releases.end(End::Clean);
                    break;
                }
                (expired, renewals, releases, table.plan(now, LONGEST_SLEEP))
            };
            for hold in expired {
                hold.loss();
            }
            for (_, batch) in by_lease(renewals) {
                calls.spawn(Arc::clone(&self).renew(batch));
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
                () = stop.cancelled(), if !stopping => {}
            }
        }
        calls.abort_all();
        self.backend.close().await
    }
}

/// One call for leases of about the same length, so that a short one, whose answer is worth
/// nothing after a short while, does not cut off the answers of long ones.
fn by_lease(renewals: Vec<Due>) -> HashMap<u32, Vec<Due>> {
    let mut classes: HashMap<u32, Vec<Due>> = HashMap::default();
    for due in renewals {
        let class = due.ttl.as_millis().max(1).ilog2();
        classes.entry(class).or_default().push(due);
    }
    classes
}

struct Over<'a>(&'a Watchdog);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.table().releases.end(End::Sudden);
        self.0.drained.notify_waiters();
    }
}

async fn sleep_for(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}
