//! What the tests on private servers share: clients, a crowd of them, and a judge.

#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lockkit_core::{Guard, Locker, LockerOptions, Result, Unlocked};
use lockkit_redis::Redis;
use lockkit_servers::redis::RedisServer;
use tokio::sync::Mutex;
use tokio::task::{JoinHandle, block_in_place};
use tokio::time::sleep;

/// How long to wait for what should take a second.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A client with a lease of its own.
pub(crate) async fn client(url: &str, ttl: Duration) -> Locker {
    try_client(url, ttl).await.unwrap()
}

pub(crate) async fn try_client(url: &str, ttl: Duration) -> Result<Locker> {
    let mut options = LockerOptions::default();
    options.ttl = ttl;
    Locker::with_options(Redis::connect(url).await?, options)
}

/// Lets go of what was held until now.
pub(crate) async fn let_go(guard: Guard) {
    assert_eq!(guard.unlock().await.unwrap(), Unlocked::Clean);
}

/// What `redis-cli` says.
pub(crate) fn cli(server: &RedisServer, command: &[&str]) -> String {
    block_in_place(|| server.cli(command)).unwrap()
}

/// How many connections of this library a server has: nobody else here speaks RESP3.
pub(crate) fn connections(server: &RedisServer) -> usize {
    let list = cli(server, &["CLIENT", "LIST"]);
    list.matches("resp=3").count()
}

/// A number out of `INFO`; 0 if it is not there.
pub(crate) fn number(server: &RedisServer, section: &str, name: &str) -> u64 {
    let info = cli(server, &["INFO", section]);
    let value = info
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    // `17`, or `calls=17,usec=…`.
    let value = value.map(|value| value.split_once("calls=").map_or(value, |(_, rest)| rest));
    let value = value.map(|value| value.trim_start_matches("count=").trim());
    let digits = value.and_then(|value| value.split(',').next());
    digits.map_or(0, |digits| digits.parse().unwrap())
}

/// Waits until something has come to pass; how long that took.
pub(crate) async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) -> Duration {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "not in time: {what}");
        sleep(Duration::from_millis(20)).await;
    }
    started.elapsed()
}

/// A resource behind a lock: it refuses a fence that is not above all before it, and counts how
/// often somebody came while another guard was valid.
#[derive(Debug, Default)]
pub(crate) struct Register(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    inside: Vec<Arc<Guard>>,
    fences: BTreeSet<u64>,
    refused: usize,
    overlaps: usize,
}

impl Register {
    pub(crate) async fn enter(&self, guard: &Arc<Guard>) {
        let mut entries = self.0.lock().await;
        let fence = guard.fence().get();
        if entries.fences.last().is_some_and(|last| fence <= *last) {
            entries.refused += 1;
        }
        assert!(
            entries.fences.insert(fence),
            "fence {fence} was given to two"
        );
        let is_inside = entries.inside.iter().any(|other| other.is_held());
        if is_inside && guard.is_held() {
            entries.overlaps += 1;
        }
        entries.inside.push(Arc::clone(guard));
    }

    pub(crate) async fn leave(&self, guard: Arc<Guard>) -> Guard {
        let mut entries = self.0.lock().await;
        entries.inside.retain(|other| !Arc::ptr_eq(other, &guard));
        drop(entries);
        Arc::into_inner(guard).unwrap()
    }

    /// Nobody came with an old fence, or while somebody else was inside.
    pub(crate) async fn saw_nothing_wrong(&self) {
        let entries = self.0.lock().await;
        assert_eq!((entries.refused, entries.overlaps), (0, 0));
    }

    pub(crate) async fn highest(&self) -> u64 {
        self.0.lock().await.fences.last().copied().unwrap_or(0)
    }
}

/// Clients that take one lock after the other, and one at a time.
#[derive(Debug)]
pub(crate) struct Crowd {
    pub(crate) register: Arc<Register>,
    stop: Arc<AtomicBool>,
    rounds: Arc<Vec<AtomicUsize>>,
    workers: Vec<JoinHandle<()>>,
}

impl Crowd {
    pub(crate) async fn gather(url: &str, ttl: Duration, name: &str, clients: usize) -> Self {
        let register = Arc::new(Register::default());
        let stop = Arc::new(AtomicBool::new(false));
        let rounds: Vec<_> = (0..clients).map(|_| AtomicUsize::new(0)).collect();
        let rounds = Arc::new(rounds);
        let mut workers = Vec::new();
        for at in 0..clients {
            let locker = client(url, ttl).await;
            let (register, stop) = (Arc::clone(&register), Arc::clone(&stop));
            let (rounds, name) = (Arc::clone(&rounds), name.to_owned());
            workers.push(tokio::spawn(async move {
                let mutex = locker.mutex(name).wait(Duration::from_secs(30));
                while !stop.load(Ordering::SeqCst) {
                    let guard = Arc::new(mutex.lock().await.unwrap());
                    register.enter(&guard).await;
                    sleep(Duration::from_millis(2)).await;
                    let guard = register.leave(guard).await;
                    // It may be lost, or nobody may be there to tell; then it frees itself.
                    let _ = guard.unlock().await;
                    rounds[at].fetch_add(1, Ordering::SeqCst);
                }
                let _ = locker.close().await;
            }));
        }
        Self {
            register,
            stop,
            rounds,
            workers,
        }
    }

    /// Waits until each of them has had so many more turns; how long that took.
    pub(crate) async fn goes_on_for(&self, turns: usize) -> Duration {
        let count = |round: &AtomicUsize| round.load(Ordering::SeqCst);
        let before: Vec<usize> = self.rounds.iter().map(count).collect();
        eventually("everybody had a turn", || {
            let mut both = self.rounds.iter().zip(&before);
            let lame = self.workers.iter().any(JoinHandle::is_finished);
            lame || both.all(|(now, before)| count(now) >= before + turns)
        })
        .await
    }

    pub(crate) async fn disperse(self) -> Arc<Register> {
        self.stop.store(true, Ordering::SeqCst);
        for worker in self.workers {
            worker.await.unwrap();
        }
        self.register
    }
}
