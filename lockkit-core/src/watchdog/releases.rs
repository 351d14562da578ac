//! Releases that nobody waits for: of dropped guards, cancelled waiters, attempts undone.

use std::time::Duration;

use crate::{HoldId, Instant};

/// A release that has to reach the service.
pub(super) struct Release {
    pub(super) id: HoldId,
    /// When to send it, at the earliest.
    due: Instant,
    /// When there is no point any more: the lease has run out by itself.
    give_up_at: Instant,
    pause: Duration,
}

/// The releases still to be sent, and a count of those that are on their way.
#[derive(Default)]
pub(super) struct Releases {
    queue: Vec<Release>,
    on_their_way: usize,
    /// Releases given up since the start: their leases ran out before the service answered.
    abandoned: usize,
    /// Set once there is no task any more that would send one.
    ended: bool,
}

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl Releases {
    /// Queues a release to be sent at `due`, and repeated for a lease if nobody answers.
    pub(super) fn push(&mut self, id: HoldId, due: Instant, ttl: Duration) {
        if self.ended {
            return;
        }
        let release = Release {
            id,
            due,
            give_up_at: due + ttl,
            pause: FIRST_PAUSE,
        };
        self.queue.push(release);
    }

    /// Takes out what is due; the caller owes one [`settle`](Self::settle) for each.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<Release> {
        let due: Vec<Release> = self
            .queue
            .extract_if(.., |release| release.due <= now)
            .collect();
        self.on_their_way += due.len();
        due
    }

    /// Accounts for one answer: answered releases are done, others go again after a pause that
    /// doubles, until their lease has run out.
    pub(super) fn settle(&mut self, mut release: Release, answered: bool, now: Instant) {
        self.on_their_way = self.on_their_way.saturating_sub(1);
        if answered {
            return;
        }
        if now >= release.give_up_at {
            self.abandoned += 1;
            return;
        }
        release.due = now + release.pause.mul_f64(rand::random_range(0.75..1.25));
        release.pause = (release.pause * 2).min(LONGEST_PAUSE);
        self.queue.push(release);
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.queue.iter().map(|release| release.due).min()
    }

    /// Makes everything due that was to be sent later.
    pub(super) fn hurry(&mut self, now: Instant) {
        for release in &mut self.queue {
            release.due = release.due.min(now);
        }
    }

    /// Gives up what is left, and all that would come later.
    pub(super) fn end(&mut self) {
        self.ended = true;
        self.abandoned += self.outstanding();
        self.queue.clear();
        self.on_their_way = 0;
    }

    pub(super) fn outstanding(&self) -> usize {
        self.queue.len() + self.on_their_way
    }

    pub(super) const fn abandoned(&self) -> usize {
        self.abandoned
    }
}
