//! Releases that nobody waits for: of dropped guards, cancelled waiters, attempts undone.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::{HoldId, Instant};

/// A release that has to reach the service.
pub(super) struct Release {
    pub(super) id: HoldId,
    /// When there is no point any more: the lease has run out by itself.
    give_up_at: Instant,
    pause: Duration,
}

/// How a release that was sent came back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Answered,
    Failed,
    /// Not at all, within the time of a call.
    Hung,
}

/// How the task ended that sends releases.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// With nothing left to send.
    Clean,
    /// With its runtime, or by a panic.
    Sudden,
}

/// The releases still to be sent, and a count of those that are on their way.
#[derive(Default)]
pub(super) struct Releases {
    /// By the moment when to send them, at the earliest.
    queue: BTreeMap<(Instant, u64), Release>,
    next: u64,
    on_their_way: usize,
    /// How many were given up since [`count_anew`](Self::count_anew): their leases ran out before
    /// the service answered, or nobody was left to send them.
    abandoned: usize,
    end: Option<End>,
}

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// What hangs keeps a task busy, so it is repeated more and more rarely.
const LONGEST_PAUSE_AFTER_HANGING: Duration = Duration::from_secs(600);
/// Where a session carries the lease, a hold does not end before the session does; so a release is
/// repeated for a while however short the lease.
const LEAST_PATIENCE: Duration = Duration::from_secs(60);

impl Releases {
    /// Queues a release to be sent at `due`, and repeated for a lease if nobody answers.
    pub(super) fn push(&mut self, id: HoldId, due: Instant, ttl: Duration) {
        let release = Release {
            id,
            give_up_at: due + ttl.max(LEAST_PATIENCE),
            pause: FIRST_PAUSE,
        };
        self.enqueue(release, due);
    }

    fn enqueue(&mut self, release: Release, due: Instant) {
        match self.end {
            None => {
                self.next += 1;
                self.queue.insert((due, self.next), release);
            }
            // Whatever is let go after a clean end was released by the close.
            Some(End::Clean) => {}
            Some(End::Sudden) => self.abandoned += 1,
        }
    }

    /// Takes out what is due; the caller owes one [`settle`](Self::settle) for each.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<Release> {
        let later = self.queue.split_off(&(now, u64::MAX));
        let due = std::mem::replace(&mut self.queue, later);
        self.on_their_way += due.len();
        due.into_values().collect()
    }

    /// Accounts for one answer: answered releases are done, others go again after a pause that
    /// doubles, until their lease has run out. `jitter` is one for all that failed together, so
    /// that they go together again.
    pub(super) fn settle(
        &mut self,
        mut release: Release,
        outcome: Outcome,
        now: Instant,
        jitter: f64,
    ) {
        self.on_their_way = self.on_their_way.saturating_sub(1);
        if outcome == Outcome::Answered {
            return;
        }
        if now >= release.give_up_at {
            self.abandoned += 1;
            return;
        }
        if outcome == Outcome::Hung {
            release.pause = (release.pause * 16).min(LONGEST_PAUSE_AFTER_HANGING);
        }
        let due = now + release.pause.mul_f64(jitter);
        if release.pause < LONGEST_PAUSE {
            release.pause = (release.pause * 2).min(LONGEST_PAUSE);
        }
        self.enqueue(release, due);
    }

    /// Makes everything due that was to be sent later.
    pub(super) fn hurry(&mut self, now: Instant) {
        let later = self.queue.split_off(&(now, u64::MAX));
        let hurried = later
            .into_iter()
            .map(|((_, number), release)| ((now, number), release));
        self.queue.extend(hurried);
    }

    /// Forgets what was given up so far.
    pub(super) const fn count_anew(&mut self) {
        self.abandoned = 0;
    }

    /// Gives up what is left, unless it has ended before.
    pub(super) fn end(&mut self, end: End) {
        if self.end.is_none() {
            self.end = Some(end);
            self.abandoned += self.outstanding();
            self.queue.clear();
            self.on_their_way = 0;
        }
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.queue.first_key_value().map(|((due, _), _)| *due)
    }

    pub(super) fn outstanding(&self) -> usize {
        self.queue.len() + self.on_their_way
    }

    pub(super) const fn abandoned(&self) -> usize {
        self.abandoned
    }
}
