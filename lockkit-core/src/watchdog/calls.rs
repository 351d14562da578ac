//! The watchdog's calls to the backend, each bounded in time.

use std::sync::Arc;
use std::time::Duration;

use super::Watchdog;
use super::releases::{Outcome, Release};
use super::table::{Due, Table, Tenant, next_beat};
use crate::hold::{Hold, LossReason};
use crate::observe::Renewals;
use crate::place::Place;
use crate::{ErrorKind, HoldId, Instant, Renewal};

/// How many answers are worked in at a time: whoever locks or unlocks meanwhile has to wait.
const CHUNK: usize = 1024;

/// What to tell once the table's lock is let go.
#[derive(Default)]
struct News {
    gone: Vec<Arc<Hold>>,
    asked_again: Vec<Arc<Place>>,
}

impl News {
    fn tell(self) {
        for hold in self.gone {
            hold.lose(LossReason::Gone);
        }
        for place in self.asked_again {
            place.news.notify_one();
        }
    }
}

impl Watchdog {
    /// Renews a batch and moves each row by its answer.
    pub(super) async fn renew(self: Arc<Self>, batch: Vec<Due>) {
        let ids: Vec<HoldId> = batch.iter().map(|due| due.id.clone()).collect();
        let shortest = batch.iter().map(|due| due.ttl).min().unwrap_or_default();
        // An answer that takes longer than this is as good as none.
        let limit = self.call_timeout.min(shortest / 3);
        let answers = tokio::time::timeout(limit, self.backend.renew(&ids)).await;
        let now = self.clock.now();
        let mut renewals = Renewals::default();
        // Too few answers are unknown ones.
        let mut answers = answers.unwrap_or_default().into_iter().map(Some);
        for chunk in batch.chunks(CHUNK) {
            let mut news = News::default();
            let mut table = self.table();
            for due in chunk {
                let answer = answers.next().flatten();
                *match &answer {
                    Some(Renewal::Renewed { .. }) => &mut renewals.renewed,
                    Some(Renewal::Gone) => &mut renewals.gone,
                    Some(Renewal::Unknown(_)) | None => &mut renewals.unknown,
                } += 1;
                answered(&mut table, &mut news, due, answer, now);
            }
            drop(table);
            news.tell();
        }
        self.observer.renewed(renewals);
        self.wake.notify_one();
    }

    /// Sends a batch of releases; what is not answered goes again later.
    pub(super) async fn release(self: Arc<Self>, batch: Vec<Release>) {
        let ids: Vec<HoldId> = batch.iter().map(|release| release.id.clone()).collect();
        let backend = Arc::clone(&self.backend);
        // In a task of its own, because a release is never dropped half-way, not even by our
        // time limit.
        let call = tokio::spawn(async move { backend.release(&ids).await });
        let (answers, silence) = match tokio::time::timeout(self.call_timeout, call).await {
            Ok(answers) => (answers.unwrap_or_default(), Outcome::Failed),
            Err(_) => (Vec::new(), Outcome::Hung),
        };
        let mut answers = answers.into_iter();
        let now = self.clock.now();
        let jitter = rand::random_range(0.75..1.25);
        let mut table = self.table();
        for release in batch {
            let answer = answers.next();
            let told = match &answer {
                Some(Ok(released)) => Ok(*released),
                Some(Err(error)) => Err(error.kind()),
                None => Err(ErrorKind::Unavailable),
            };
            self.observer.released(told);
            let outcome = match answer {
                Some(Ok(_)) => Outcome::Answered,
                Some(Err(error)) if error.kind() == ErrorKind::Closed => Outcome::Answered,
                Some(Err(_)) => Outcome::Failed,
                None => silence,
            };
            table.releases.settle(release, outcome, now, jitter);
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

    /// Lets nobody in any more, tells every hold that it is lost, and queues the releases of holds
    /// and of places in line that rest.
    pub(crate) fn close(&self) {
        let rows = {
            let mut table = self.table();
            let (first, rows) = table.close();
            if first {
                table.releases.count_anew();
            }
            rows
        };
        // Told first, then released.
        let mut released = Vec::with_capacity(rows.len());
        for row in rows {
            let to_release = match &row.tenant {
                Tenant::Hold(hold) => {
                    hold.lose(LossReason::Closed);
                    true
                }
                Tenant::Place(place) => {
                    place.news.notify_one();
                    place.withdraw()
                }
            };
            if to_release {
                released.push((row.tenant.id().clone(), row.ttl));
            }
        }
        let now = self.clock.now();
        let mut table = self.table();
        table.releases.hurry(now);
        for (id, ttl) in released {
            table.releases.push(id, now, ttl);
        }
        drop(table);
        self.wake.notify_one();
    }

    /// Waits until every queued release was answered or given up; how many were given up since
    /// the close.
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

/// Moves one row by its answer.
fn answered(table: &mut Table, news: &mut News, due: &Due, answer: Option<Renewal>, now: Instant) {
    let attempt = due.id.attempt();
    let Some(tenant) = table.tenant(attempt) else {
        return;
    };
    match (answer, tenant) {
        (Some(Renewal::Renewed { sent_at, ttl }), tenant) => {
            if let Tenant::Hold(hold) = tenant {
                hold.renewed(sent_at, ttl);
            }
            table.update(attempt, |row| {
                row.ttl = ttl;
                // What was confirmed long ago is asked for again, but not without a pause.
                row.renew_at = Some(next_beat(sent_at, ttl).max(now + ttl / 12));
            });
        }
        // The question was about a place that has become a hold meanwhile.
        (Some(Renewal::Gone), Tenant::Hold(_)) if due.place => {
            table.update(attempt, |row| row.renew_at = row.renew_at.map(|_| now));
        }
        (Some(Renewal::Gone), Tenant::Hold(hold)) => {
            news.gone.push(Arc::clone(hold));
            table.remove(attempt);
        }
        (Some(Renewal::Gone), Tenant::Place(place)) => news.asked_again.push(Arc::clone(place)),
        // Unknown neither extends nor ends: the old deadline runs on, and the next try comes
        // sooner.
        (Some(Renewal::Unknown(_)) | None, _) => {
            table.update(attempt, |row| {
                row.renew_at = row.renew_at.map(|_| now + due.ttl / 12);
            });
        }
    }
}
