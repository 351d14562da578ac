//! One actor: random operations on one client, one after the other.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use lockkit_core::{Clock, Error, ErrorKind, Guard, Instant, Locker, Mode, Result};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::time::{sleep, timeout};

use super::plan::{Topic, lease};
use super::pool::{Detached, Pool};
use super::record::{Grant, Log, Record};

/// What the actors of one process share.
#[derive(Clone, Debug)]
pub(super) struct Scene {
    pub(super) topic: Topic,
    pub(super) log: Arc<Log>,
    pub(super) detached: Arc<Pool>,
    /// When the storm began, on the backend's clock, the same for all processes.
    pub(super) began: Instant,
    pub(super) ends: Instant,
}

/// Who it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Its place in the storm, the same for whoever follows it when it is killed.
    pub(super) slot: u32,
    /// How many were at that place before it.
    pub(super) incarnation: u32,
    /// How many places there are.
    pub(super) slots: u32,
    pub(super) seed: u64,
}

pub(super) struct Actor {
    pub(super) scene: Scene,
    pub(super) part: Part,
    pub(super) locker: Locker,
    pub(super) rng: StdRng,
    clock: Clock,
    next_hold: u64,
}

impl Actor {
    pub(super) fn new(scene: Scene, part: Part, locker: Locker) -> Self {
        let Part {
            slot,
            incarnation,
            seed,
            ..
        } = part;
        let who = u64::from(slot) << 32 | u64::from(incarnation);
        Self {
            scene,
            part,
            clock: locker.descriptor().clock,
            locker,
            rng: StdRng::seed_from_u64(seed ^ who.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            // 20 bits of place, 16 of incarnation, the rest to count.
            next_hold: u64::from(slot) << 44 | u64::from(incarnation) << 28,
        }
    }

    /// Acts until the storm ends.
    pub(super) async fn run(mut self) {
        while self.now() < self.scene.ends {
            self.scene.log.write(Record::Began);
            if self.chance(20) {
                self.release_detached().await;
            }
            self.act().await;
        }
    }

    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Whether something happens that does so `percent` times in a hundred.
    pub(super) fn chance(&mut self, percent: u32) -> bool {
        self.rng.random_range(0..100) < percent
    }

    pub(super) fn millis(&mut self, below: u64) -> Duration {
        Duration::from_micros(self.rng.random_range(0..below * 1_000))
    }

    pub(super) fn lease(&self) -> Duration {
        lease(self.locker.descriptor())
    }

    pub(super) fn wrong(&self, what: impl Into<String>) {
        self.scene.log.write(Record::Wrong(what.into()));
    }

    /// Runs an operation to its end, or drops it half-way; what it brought.
    pub(super) async fn perform<T>(
        &mut self,
        operation: impl Future<Output = Result<T>>,
    ) -> Option<T> {
        let done = match self.rng.random_range(0..10) {
            0..2 => timeout(self.millis(30), operation).await.ok(),
            2 => {
                let polls = self.rng.random_range(0..12);
                after_polls(operation, polls).await
            }
            _ => Some(operation.await),
        };
        match done {
            Some(Ok(value)) => Some(value),
            Some(Err(error)) => {
                self.check(&error);
                None
            }
            None => {
                self.scene.log.write(Record::Dropped);
                None
            }
        }
    }

    /// An error that a storm explains, or one that it does not.
    pub(super) fn check(&self, error: &Error) {
        let explained = matches!(
            error.kind(),
            ErrorKind::Timeout | ErrorKind::Unavailable | ErrorKind::Lost
        );
        if !explained {
            self.wrong(format!("an error: {error}"));
        }
    }

    /// Writes down that a guard was given; the number of its hold.
    pub(super) fn granted(&mut self, name: u32, guard: &Guard, asked: Instant) -> u64 {
        self.granted_as(name, guard.mode(), guard.fence().get(), asked)
    }

    pub(super) fn granted_as(&mut self, name: u32, mode: Mode, fence: u64, asked: Instant) -> u64 {
        self.next_hold += 1;
        self.scene.log.write(Record::Grant(Grant {
            hold: self.next_hold,
            name,
            mode,
            fence,
            asked,
            from: self.now(),
        }));
        self.next_hold
    }

    /// Writes down that the holds of a guard are believed in; whether they are.
    pub(super) fn believes(&self, holds: &[u64], guard: &Guard) -> bool {
        // Read before the look: at this moment it was still so.
        let at = self.now();
        let held = guard.is_held();
        if held {
            for hold in holds {
                self.scene.log.write(Record::Held { hold: *hold, at });
            }
        }
        held
    }

    /// Works for a while, looking at the guard now and then; whether it is still held.
    pub(super) async fn work(&mut self, holds: &[u64], guard: &Guard) -> bool {
        let long = if self.chance(3) { 500 } else { 8 };
        for _ in 0..self.rng.random_range(0..4) {
            let pause = self.millis(long);
            sleep(pause).await;
            if !self.believes(holds, guard) {
                return false;
            }
        }
        true
    }

    /// Lets go, in one way or another.
    pub(super) async fn let_go(&mut self, holds: &[u64], guard: Guard) {
        self.believes(holds, &guard);
        match self.rng.random_range(0..10) {
            0..3 => drop(guard),
            3 if holds.len() == 1 => self.detach(holds[0], guard).await,
            _ => {
                self.perform(guard.unlock()).await;
            }
        }
    }

    async fn detach(&mut self, hold: u64, guard: Guard) {
        let (asked, ttl) = (self.now(), self.lease());
        if let Some(id) = self.perform(guard.detach(ttl)).await {
            let until = asked + ttl;
            self.still_there(hold, until);
            self.scene.detached.put(Detached { id, hold, until });
        }
    }

    /// A detached hold is believed in for its time, or until it is released.
    fn still_there(&self, hold: u64, until: Instant) {
        let at = self.now();
        if at < until {
            self.scene.log.write(Record::Held { hold, at });
        }
    }

    async fn release_detached(&mut self) {
        if let Some(Detached { id, hold, until }) = self.scene.detached.take() {
            let pause = self.millis(100);
            sleep(pause).await;
            self.still_there(hold, until);
            let locker = self.locker.clone();
            self.perform(locker.release(&id)).await;
        }
    }
}

/// Drops `operation` after so many polls, unless it is done before.
async fn after_polls<T>(operation: impl Future<Output = T>, polls: usize) -> Option<T> {
    let mut operation = pin!(operation);
    let mut left = polls;
    poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        operation.as_mut().poll(cx).map(Some)
    })
    .await
}
