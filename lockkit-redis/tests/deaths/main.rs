//! What must hold while processes that hold and wait are killed and stopped.
//!
//! A program of its own instead of a libtest harness, because it is also the child process.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::future::Future;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Trial};
use lockkit_core::{Fence, Locker, Primitive, Resource};
use lockkit_redis::Redis;
use lockkit_servers::Clock;
use lockkit_servers::redis::RedisServer;
use lockkit_testkit::{Peer, peer_main};
use tokio::time::sleep;

/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
const LONG: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("lockkit-testkit-peer") {
        return peer_main(|url| async move { Ok(Box::new(Redis::connect(&url).await?) as _) });
    }
    let trials = vec![
        trial(
            "a_holder_that_is_killed_is_followed_a_lease_later_and_by_one_only",
            holder_killed,
        ),
        trial(
            "a_waiter_that_is_killed_is_passed_over_at_the_next_release",
            waiter_killed,
        ),
        trial("a_thousand_dead_in_line_delay_nobody", a_thousand_dead),
        trial(
            "who_is_killed_right_after_it_was_let_in_is_followed_a_lease_later",
            let_in_and_killed,
        ),
        trial(
            "a_holder_that_was_stopped_past_its_lease_does_not_believe_in_it_when_it_goes_on",
            stopped,
        ),
        trial(
            "a_waiter_that_was_stopped_is_let_in_when_it_goes_on",
            waiter_stopped,
        ),
        trial(
            "a_client_whose_clock_jumps_keeps_what_it_has_and_takes_nothing_from_others",
            clock_jumps,
        ),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// A test with a server and a client of its own.
fn trial<F>(name: &str, test: fn(Rig) -> F) -> Trial
where
    F: Future<Output = ()> + 'static,
{
    Trial::test(name, move || {
        let server = RedisServer::start().map_err(|error| format!("{error:#}"))?;
        let runtime = tokio::runtime::Runtime::new()?;
        runtime.block_on(async {
            let backend = Redis::connect(&server.url()).await.unwrap();
            let locker = Locker::new(backend).unwrap();
            test(Rig { server, locker }).await;
        });
        Ok(())
    })
}

struct Rig {
    server: RedisServer,
    locker: Locker,
}

impl Rig {
    async fn peer(&self) -> Peer {
        self.peer_by(&std::env::current_exe().unwrap()).await
    }

    async fn peer_by(&self, program: &Path) -> Peer {
        Peer::spawn(program, &self.server.url(), PATIENCE)
            .await
            .unwrap()
    }

    /// A child process that holds the mutex.
    async fn holder(&self, ttl: Duration) -> (Peer, Fence) {
        let mut peer = self.peer().await;
        let fence = peer.lock("n", ttl, PATIENCE).await.unwrap().unwrap();
        (peer, fence)
    }

    /// A child process that stands in line for the mutex.
    async fn waiter(&self, ttl: Duration) -> Peer {
        let before = self.waiting().await;
        let mut peer = self.peer().await;
        peer.begin_lock("n", ttl, LONG).await.unwrap();
        while self.waiting().await != before + 1 {
            sleep(Duration::from_millis(10)).await;
        }
        peer
    }

    async fn waiting(&self) -> usize {
        self.locker.inspect(&n()).await.unwrap().waiters.len()
    }

    /// Who holds it, by fence.
    async fn held_by(&self) -> Option<Fence> {
        let holders = self.locker.inspect(&n()).await.unwrap().holders;
        assert!(holders.len() <= 1, "{holders:?}");
        holders.first().map(|holder| holder.fence)
    }
}

fn n() -> Resource {
    Resource::new(Primitive::Mutex, "n".parse().unwrap())
}

async fn holder_killed(rig: Rig) {
    let lease = Duration::from_secs(2);
    let (holder, first) = rig.holder(lease).await;
    let waiters: Vec<_> = (0..5)
        .map(|_| {
            let lock = rig.locker.mutex("n").ttl(LONG);
            tokio::spawn(async move {
                let guard = lock.lock().await.unwrap();
                let fence = guard.fence();
                sleep(Duration::from_millis(20)).await;
                assert!(guard.is_held());
                let _ = guard.unlock().await.unwrap();
                fence
            })
        })
        .collect();
    while rig.waiting().await != 5 {
        sleep(Duration::from_millis(10)).await;
    }
    holder.kill().await.unwrap();
    let killed = Instant::now();
    let mut fences = Vec::new();
    for waiter in waiters {
        fences.push(waiter.await.unwrap());
    }
    assert!(
        killed.elapsed() < lease + Duration::from_secs(3),
        "{:?}",
        killed.elapsed()
    );
    // Each was let in once, in order of coming, after the one that died.
    fences.insert(0, first);
    let mut sorted = fences.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(sorted.len(), 6, "{fences:?}");
    assert_eq!(sorted[0], first);
    assert_eq!(rig.held_by().await, None);
}

async fn waiter_killed(rig: Rig) {
    let guard = rig.locker.mutex("n").ttl(LONG).lock().await.unwrap();
    let first = rig.waiter(LONG).await;
    let mut second = rig.waiter(LONG).await;
    first.kill().await.unwrap();
    let released = Instant::now();
    let _ = guard.unlock().await.unwrap();
    let fence = second.locked(PATIENCE).await.unwrap().unwrap();
    // Nobody has waited for a lease of a minute.
    assert!(
        released.elapsed() < PATIENCE / 2,
        "{:?}",
        released.elapsed()
    );
    assert_eq!(rig.held_by().await, Some(fence));
    second.ask("unlock n").await.unwrap();
}

async fn a_thousand_dead(rig: Rig) {
    let guard = rig.locker.mutex("n").ttl(LONG).lock().await.unwrap();
    // Their client is gone without a word: a runtime that is stopped, as by a kill.
    let url = rig.server.url();
    let dead = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let locker = Locker::new(Redis::connect(&url).await.unwrap()).unwrap();
            for _ in 0..1_000 {
                let lock = locker.mutex("n").ttl(LONG);
                tokio::spawn(async move { std::mem::forget(lock.lock().await) });
            }
            while locker.inspect(&n()).await.unwrap().waiters.len() < 1_000 {
                sleep(Duration::from_millis(20)).await;
            }
            std::mem::forget(locker);
        });
        runtime.shutdown_background();
    });
    dead.await.unwrap();
    let lock = rig.locker.mutex("n").ttl(LONG);
    let last = tokio::spawn(async move { lock.lock().await.unwrap() });
    sleep(Duration::from_millis(300)).await;
    rig.server.cli(&["CONFIG", "RESETSTAT"]).unwrap();
    let released = Instant::now();
    let _ = guard.unlock().await.unwrap();
    let last = last.await.unwrap();
    assert!(
        released.elapsed() < Duration::from_secs(5),
        "{:?}",
        released.elapsed()
    );
    let stats = rig.server.cli(&["INFO", "commandstats"]).unwrap();
    let line = stats
        .lines()
        .find(|line| line.starts_with("cmdstat_evalsha:"));
    let micros = line
        .unwrap()
        .split("usec=")
        .nth(1)
        .unwrap()
        .split(',')
        .next()
        .unwrap();
    let micros: u64 = micros.parse().unwrap();
    // All scripts together: generous, for a machine that does other things.
    assert!(micros < 200_000, "{micros} us to pass over a thousand");
    let _ = last.unlock().await.unwrap();
}

async fn let_in_and_killed(rig: Rig) {
    let lease = Duration::from_secs(2);
    // All leases are alike: who waits looks again when that of the holder it has seen is over.
    let guard = rig.locker.mutex("n").ttl(lease).lock().await.unwrap();
    let waiter = rig.waiter(lease).await;
    // It is stopped, so its connection is there and it hears nothing.
    waiter.pause().unwrap();
    let lock = rig.locker.mutex("n").ttl(lease);
    let next = tokio::spawn(async move { lock.lock().await.unwrap() });
    while rig.waiting().await != 2 {
        sleep(Duration::from_millis(10)).await;
    }
    let first = guard.fence();
    let _ = guard.unlock().await.unwrap();
    let second = rig.held_by().await.unwrap();
    assert!(second > first);
    waiter.kill().await.unwrap();
    let killed = Instant::now();
    let guard = next.await.unwrap();
    assert!(
        killed.elapsed() < lease + Duration::from_secs(3),
        "{:?}",
        killed.elapsed()
    );
    assert!(guard.fence() > second && guard.is_held());
    let _ = guard.unlock().await.unwrap();
}

async fn stopped(rig: Rig) {
    let (mut holder, first) = rig.holder(Duration::from_secs(1)).await;
    holder.pause().unwrap();
    let lock = rig.locker.mutex("n").ttl(LONG);
    let guard = tokio::time::timeout(PATIENCE, lock.lock())
        .await
        .unwrap()
        .unwrap();
    assert!(guard.fence() > first, "a stale write would be accepted");
    holder.resume().unwrap();
    assert_eq!(holder.ask("is_held n").await.unwrap(), "false");
    assert_eq!(holder.ask("unlock n").await.unwrap(), "lost");
    assert!(guard.is_held());
    assert_eq!(rig.held_by().await, Some(guard.fence()));
    let _ = guard.unlock().await.unwrap();
}

async fn waiter_stopped(rig: Rig) {
    let lease = Duration::from_secs(1);
    let guard = rig.locker.mutex("n").ttl(LONG).lock().await.unwrap();
    let mut waiter = rig.waiter(lease).await;
    waiter.pause().unwrap();
    // The grant comes while it is stopped, and is over when it goes on.
    let first = guard.fence();
    let _ = guard.unlock().await.unwrap();
    sleep(lease * 3).await;
    assert_eq!(rig.held_by().await, None);
    let lock = rig.locker.mutex("n").ttl(LONG);
    let guard = lock.lock().await.unwrap();
    assert!(guard.fence() > first);
    waiter.resume().unwrap();
    while rig.waiting().await != 1 {
        sleep(Duration::from_millis(10)).await;
    }
    assert!(guard.is_held());
    let second = guard.fence();
    let _ = guard.unlock().await.unwrap();
    let third = waiter.locked(PATIENCE).await.unwrap().unwrap();
    assert!(third > second);
    assert_eq!(waiter.ask("is_held n").await.unwrap(), "true");
    waiter.ask("unlock n").await.unwrap();
}

async fn clock_jumps(rig: Rig) {
    const MINUTE: i64 = 60_000;
    let clock = Clock::new().unwrap();
    let program = clock.wrapped(&std::env::current_exe().unwrap()).unwrap();
    let lease = Duration::from_secs(2);
    let mut peer = rig.peer_by(&program).await;
    let fence = peer.lock("n", lease, PATIENCE).await.unwrap().unwrap();
    let permits = rig.locker.semaphore("s", 2).ttl(lease);
    let permits = permits.acquire_many(2).await.unwrap();
    let other = rig.locker.mutex("other").ttl(lease).lock().await.unwrap();
    let lock = rig.locker.mutex("n").ttl(LONG);
    let waiter = tokio::spawn(async move { lock.lock().await.unwrap() });
    for jump in [60 * MINUTE, -60 * MINUTE, 10 * MINUTE] {
        clock.set(jump).unwrap();
        sleep(lease * 2).await;
        assert_eq!(peer.ask("is_held n").await.unwrap(), "true");
        assert_eq!(rig.held_by().await, Some(fence), "not renewed");
        // By its clock, what others hold is long over, or lasts for long.
        let tried = peer.ask("try other 2000").await.unwrap();
        assert_eq!(tried, "busy", "two holders");
        let wait = Duration::from_millis(200);
        let taken = peer.take("permits:1:2", "s", lease, wait).await.unwrap();
        assert_eq!(taken, None, "a third of two permits");
        assert!(permits.is_held() && other.is_held() && !waiter.is_finished());
    }
    assert_eq!(peer.ask("unlock n").await.unwrap(), "clean");
    let next = waiter.await.unwrap();
    assert!(next.fence() > fence);
    // It stands in line, and is let in, by no clock of its own.
    peer.begin_lock("n", lease, LONG).await.unwrap();
    while rig.waiting().await != 1 {
        sleep(Duration::from_millis(10)).await;
    }
    clock.set(-60 * MINUTE).unwrap();
    let fence = next.fence();
    let _ = next.unlock().await.unwrap();
    assert!(peer.locked(PATIENCE).await.unwrap().unwrap() > fence);
    assert_eq!(peer.ask("is_held n").await.unwrap(), "true");
    peer.ask("unlock n").await.unwrap();
}
