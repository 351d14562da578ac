//! What actors do with each primitive.

use std::sync::Arc;
use std::time::Duration;

use lockkit_core::{ErrorKind, Guard, LockName, Mode, Mutex, Upgraded};
use rand::RngExt;
use rand::seq::index::sample;
use tokio::time::sleep;

use super::actor::Actor;
use super::plan::{LATCH_AGE, PERMITS, SEGMENTS, Topic, count_of_latch};
use super::record::Record;

impl Actor {
    /// One random operation.
    pub(super) async fn act(&mut self) {
        match self.scene.topic {
            Topic::Mutex => self.mutex().await,
            Topic::ReadWrite => self.read_write().await,
            Topic::Semaphore => self.semaphore().await,
            Topic::Segmented => self.segmented().await,
            Topic::Latch => self.latch().await,
            Topic::MultiLock => self.multi_lock().await,
        }
    }

    fn some_name(&mut self) -> u32 {
        let names = self.scene.topic.names();
        self.rng.random_range(0..names)
    }

    fn name(&self, number: u32) -> String {
        self.scene.topic.name(number)
    }

    fn wait(&mut self) -> Duration {
        match self.rng.random_range(0..4) {
            0 => Duration::ZERO,
            1 => self.millis(20),
            _ => self.millis(1_500),
        }
    }

    /// A mutex in one of the ways in which it can be taken.
    fn some_mutex(&mut self, number: u32) -> Mutex {
        let mut mutex = self
            .locker
            .mutex(self.name(number))
            .ttl(self.lease())
            .wait(self.wait());
        if self.chance(50) && self.locker.descriptor().fair {
            mutex = mutex.fair();
        }
        if self.chance(10) {
            mutex = mutex.without_watchdog();
        }
        mutex
    }

    async fn mutex(&mut self) {
        let number = self.some_name();
        let lock = self.some_mutex(number);
        let asked = self.now();
        if let Some(guard) = self.perform(lock.lock()).await {
            let hold = self.granted(number, &guard, asked);
            self.work(&[hold], &guard).await;
            self.let_go(&[hold], guard).await;
        }
    }

    async fn read_write(&mut self) {
        let number = self.some_name();
        let lock = self
            .locker
            .read_write(self.name(number))
            .ttl(self.lease())
            .wait(self.wait());
        let (read, write, writes) = (lock.read(), lock.write(), self.chance(35));
        let asked = self.now();
        let guard = match writes {
            true => self.perform(write.lock()).await,
            false => self.perform(read.lock()).await,
        };
        let Some(guard) = guard else { return };
        let hold = self.granted(number, &guard, asked);
        let held = self.work(&[hold], &guard).await;
        if !held || !self.chance(40) {
            return self.let_go(&[hold], guard).await;
        }
        if let Some((hold, guard)) = self.convert(number, hold, guard).await {
            self.work(&[hold], &guard).await;
            self.let_go(&[hold], guard).await;
        }
    }

    /// Makes a reader of a writer, or the other way round.
    async fn convert(&mut self, number: u32, hold: u64, guard: Guard) -> Option<(u64, Guard)> {
        let (fence, asked) = (guard.fence(), self.now());
        self.believes(&[hold], &guard);
        if guard.mode() == Mode::Exclusive {
            let reader = self.perform(guard.downgrade()).await?;
            if reader.fence() != fence || reader.mode() != Mode::Shared {
                self.wrong(format!("a downgrade of fence {fence} became {reader:?}"));
            }
            return Some((self.granted(number, &reader, asked), reader));
        }
        match self.perform(guard.try_upgrade()).await? {
            Upgraded::Writer(writer) => {
                if writer.fence() <= fence || writer.mode() != Mode::Exclusive {
                    self.wrong(format!("an upgrade of fence {fence} became {writer:?}"));
                }
                Some((self.granted(number, &writer, asked), writer))
            }
            Upgraded::Reader(reader) => {
                if reader.fence() != fence || reader.mode() != Mode::Shared {
                    self.wrong(format!("no upgrade of fence {fence} became {reader:?}"));
                }
                self.believes(&[hold], &reader);
                Some((hold, reader))
            }
        }
    }

    async fn semaphore(&mut self) {
        let number = self.some_name();
        let count = match self.chance(70) {
            true => 1,
            false => self.rng.random_range(1..=PERMITS),
        };
        let semaphore = self
            .locker
            .semaphore(self.name(number), PERMITS)
            .ttl(self.lease())
            .wait(self.wait());
        let asked = self.now();
        if let Some(guard) = self.perform(semaphore.acquire_many(count)).await {
            let hold = self.granted(number, &guard, asked);
            self.work(&[hold], &guard).await;
            self.let_go(&[hold], guard).await;
        }
    }

    async fn segmented(&mut self) {
        let number = self.some_name();
        let lock = self
            .locker
            .segmented(self.name(number), SEGMENTS)
            .ttl(self.lease())
            .wait(self.wait());
        let (any, key) = (self.chance(60), self.rng.random_range(0..40u32).to_string());
        let asked = self.now();
        let guard = match any {
            true => self.perform(lock.lock_any()).await,
            false => self.perform(lock.lock_key(&key)).await,
        };
        let Some(guard) = guard else { return };
        if !any && guard.segment() != Some(lock.segment_of(&key)) {
            self.wrong(format!("the key {key} brought {guard:?}"));
        }
        let hold = self.granted(number, &guard, asked);
        self.work(&[hold], &guard).await;
        self.let_go(&[hold], guard).await;
    }

    async fn multi_lock(&mut self) {
        if self.chance(30) {
            return self.mutex().await;
        }
        let all = self.scene.topic.names();
        let count = self.rng.random_range(2..=4);
        let mut numbers: Vec<u32> = sample(&mut self.rng, all as usize, count)
            .into_iter()
            .filter_map(|number| u32::try_from(number).ok())
            .collect();
        let names: Vec<String> = numbers.iter().map(|number| self.name(*number)).collect();
        let lock = self
            .locker
            .multi_lock(&names)
            .ttl(self.lease())
            .wait(self.wait());
        let asked = self.now();
        let Some(guard) = self.perform(lock.lock()).await else {
            return;
        };
        numbers.sort_unstable();
        let wanted: Vec<String> = numbers.iter().map(|number| self.name(*number)).collect();
        let name = |name: &LockName| name.as_str().to_owned();
        let brought: Vec<String> = guard
            .holds()
            .map(|(id, _)| name(id.resource().name()))
            .collect();
        if brought != wanted {
            self.wrong(format!("asked for {wanted:?} and got {brought:?}"));
        }
        let fences: Vec<u64> = guard.holds().map(|(_, fence)| fence.get()).collect();
        let mut holds = Vec::with_capacity(numbers.len());
        for (number, fence) in numbers.iter().zip(fences) {
            holds.push(self.granted_as(*number, Mode::Exclusive, fence, asked));
        }
        self.work(&holds, &guard).await;
        self.let_go(&holds, guard).await;
    }

    async fn latch(&mut self) {
        let age = self.now().saturating_duration_since(self.scene.began);
        let newest = u32::try_from(age.as_millis() / LATCH_AGE.as_millis()).unwrap_or(u32::MAX);
        let number = newest.saturating_sub(self.rng.random_range(0..4));
        let latch = self.locker.latch(self.name(number)).ttl(self.lease());
        let of = count_of_latch(number);
        let pause = self.millis(10);
        sleep(pause).await;
        match self.rng.random_range(0..10) {
            // One place sets each latch, and not again after it may have opened.
            0..5 if number % self.part.slots == self.part.slot => {
                if let Some(None) = self.perform(latch.state()).await {
                    self.perform(latch.try_set(of)).await;
                }
            }
            0..6 => {
                let who = self.rng.random_range(0..of);
                let asked = self.now();
                let log = Arc::clone(&self.scene.log);
                let done = latch.count_down(format!("participant-{who}"));
                log.write(Record::Steps {
                    latch: number,
                    who,
                    at: asked,
                });
                match done.await {
                    Ok(left) => log.write(Record::Stepped {
                        latch: number,
                        who,
                        asked,
                        answered: self.now(),
                        left,
                    }),
                    // It is not set yet.
                    Err(error) if error.kind() == ErrorKind::InvalidArgument => {}
                    Err(error) => self.check(&error),
                }
            }
            wait => {
                // The longer ones are long enough for one look on a busy machine.
                let limit = match wait {
                    9 if self.chance(30) => Duration::from_secs(5),
                    _ => self.millis(300),
                };
                let asked = self.now();
                let long = limit >= Duration::from_secs(5);
                let passed = match long {
                    true => latch.wait_at_most(limit).await.map(Some),
                    false => Ok(self.perform(latch.wait_at_most(limit)).await),
                };
                let passed = match passed {
                    Ok(Some(())) => true,
                    Err(error) if error.kind() == ErrorKind::Timeout => false,
                    Ok(None) => return,
                    Err(error) => return self.check(&error),
                };
                self.scene.log.write(Record::Waited {
                    latch: number,
                    asked,
                    answered: self.now(),
                    passed,
                });
            }
        }
    }
}
