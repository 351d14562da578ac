//! Clocks of servers that jump.

use lockkit_core::{Guard, Locker, LossReason};
use lockkit_redis::Redlock;
use lockkit_servers::Clock;
use lockkit_servers::redis::RedisServer;
use tokio::time::{Instant, sleep};

use crate::rig::*;

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;

/// A server and the clock it lives by.
fn with_a_clock() -> (RedisServer, Clock) {
    let clock = tokio::task::block_in_place(|| Clock::new().unwrap());
    let server = started(RedisServer::builder().clock(&clock));
    (server, clock)
}

/// Takes one of each kind that excludes others, for so long.
async fn one_of_each(locker: &Locker, ttl: u64) -> Vec<Guard> {
    let ttl = ms(ttl);
    let semaphore = locker.semaphore("s", 2).ttl(ttl);
    vec![
        soon(locker.mutex("n").ttl(ttl).lock()).await.unwrap(),
        soon(locker.read_write("rw").ttl(ttl).write().lock())
            .await
            .unwrap(),
        soon(semaphore.acquire_many(2)).await.unwrap(),
    ]
}

/// What a key looks like after the server's clock went back by an hour.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_seems_to_last_an_hour_longer_is_cut_to_its_length_by_whoever_waits() {
    let server = server();
    let (holder, waiter) = (client(&server).await, client(&server).await);
    let register = Register::new();
    let guard = holder
        .mutex("n")
        .ttl(ms(2_000))
        .without_watchdog()
        .lock()
        .await
        .unwrap();
    assert!(register.write(&guard));
    let key = key_of(&server, "n");
    cli(&server, &["PEXPIRE", &key, "3600000"]);
    let asked = Instant::now();
    let next = soon(waiter.mutex("n").lock()).await.unwrap();
    assert!(asked.elapsed() < ms(6_000), "{:?}", asked.elapsed());
    assert!(!guard.is_held() && register.write(&next));
    let_go(next).await;

    let semaphore = holder.semaphore("s", 1).ttl(ms(2_000)).without_watchdog();
    let held = semaphore.acquire().await.unwrap();
    let ends = cli(&server, &["KEYS", "lk:*semaphore/s.x"]);
    let extend = "local a = redis.call('ZRANGE', KEYS[1], 0, 0)[1] \
                  redis.call('ZINCRBY', KEYS[1], 3600000, a) return redis.call('PERSIST', KEYS[1])";
    cli(&server, &["EVAL", extend, "1", &ends]);
    let holds = format!("{}h", &ends[..ends.len() - 1]);
    cli(&server, &["PERSIST", &holds]);
    let asked = Instant::now();
    let_go(soon(waiter.semaphore("s", 1).acquire()).await.unwrap()).await;
    assert!(asked.elapsed() < ms(6_000), "{:?}", asked.elapsed());
    assert!(!held.is_held());
}

/// What a key looks like after the server's clock went on by a minute: it is not there.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_let_in_before_a_lease_is_over_has_a_greater_fence() {
    let server = server();
    let (holder, other) = (client(&server).await, client(&server).await);
    let register = Register::new();
    let guard = holder.mutex("n").ttl(ms(3_000)).lock().await.unwrap();
    assert!(register.write(&guard));
    cli(&server, &["PEXPIRE", &key_of(&server, "n"), "1"]);
    let next = soon(other.mutex("n").lock()).await.unwrap();
    assert!(register.write(&next), "a fence fell");
    assert!(!register.write(&guard), "a stale write was accepted");
    assert_eq!(soon(guard.lost()).await, LossReason::Gone);
    assert!(next.is_held());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_clock_that_goes_on_by_a_minute_ends_holds_whose_followers_have_greater_fences() {
    let (server, clock) = with_a_clock();
    let (holder, other) = (client(&server).await, client(&server).await);
    let register = Register::new();
    let old = one_of_each(&holder, 20_000).await;
    assert!(register.write(&old[0]));
    clock.set(MINUTE).unwrap();
    // They are over for the server; the first one learns that when it renews.
    let new = one_of_each(&other, 20_000).await;
    assert!(register.write(&new[0]), "a fence fell");
    assert!(!register.write(&old[0]), "a stale write was accepted");
    for (old, new) in old.into_iter().zip(&new) {
        assert!(
            new.fence() > old.fence(),
            "{} after {}",
            new.fence(),
            old.fence()
        );
        assert_eq!(soon(old.lost()).await, LossReason::Gone);
        was_lost(old).await;
        assert!(new.is_held());
    }
    for guard in new {
        let_go(guard).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_clock_that_goes_back_by_an_hour_takes_nothing_away_and_keeps_nobody_waiting() {
    let (server, clock) = with_a_clock();
    let (holder, waiter) = (client(&server).await, client(&server).await);
    // One client renews, the other goes away without a word.
    let (proxy, url) = proxied(&server).await;
    let away = locker(&url).await;
    let renewed = holder.mutex("renewed").ttl(ms(2_000)).lock().await.unwrap();
    let left = one_of_each(&away, 2_000).await;
    cut(&proxy).await;
    clock.set(-HOUR).unwrap();
    let asked = Instant::now();
    let next = one_of_each(&waiter, 2_000).await;
    assert!(asked.elapsed() < ms(12_000), "{:?}", asked.elapsed());
    for (left, next) in left.iter().zip(&next) {
        assert!(!left.is_held() && next.is_held());
        assert!(next.fence() > left.fence(), "a fence fell");
    }
    // Who renews is there as before, and those who come now stand in line as before.
    sleep(ms(3_000)).await;
    assert!(renewed.is_held() && next.iter().all(Guard::is_held));
    let lock = waiter.mutex("renewed").ttl(ms(2_000));
    let queued = tokio::spawn(async move { lock.lock().await.unwrap() });
    in_line(&holder, "renewed", 1).await;
    sleep(ms(3_000)).await;
    assert_eq!(waiting(&holder, "renewed").await, 1, "the place is gone");
    let fence = renewed.fence();
    let_go(renewed).await;
    let queued = soon(queued).await.unwrap();
    assert!(queued.fence() > fence);
    let_go(queued).await;
    for guard in next {
        let_go(guard).await;
    }
    until("nothing stays for an hour", async || {
        let keys = cli(&server, &["KEYS", "lk:*"]);
        let kept =
            |key: &str| key.ends_with("fence") || key.ends_with("server") || key.ends_with('z');
        keys.lines().all(kept)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redlock_lets_no_second_one_in_when_the_clock_of_a_minority_jumps() {
    let servers = [with_a_clock(), with_a_clock(), with_a_clock()];
    let addresses: Vec<String> = servers.iter().map(|(server, _)| server.address()).collect();
    let url = format!("redlock://{}", addresses.join(","));
    let client = async || Locker::new(Redlock::connect(&url).await.unwrap()).unwrap();
    let (holder, other) = (client().await, client().await);
    let guard = holder.mutex("n").ttl(ms(6_000)).lock().await.unwrap();
    for jump in [MINUTE, -HOUR] {
        servers[1].1.set(jump).unwrap();
        // Meanwhile it is renewed, and given back to the one that let it run out.
        let end = Instant::now() + ms(4_000);
        while Instant::now() < end {
            let second = other.mutex("n").try_lock().await.unwrap();
            assert!(second.is_none(), "two hold it");
            sleep(ms(20)).await;
        }
        assert!(guard.is_held());
    }
    // That of a majority ends it; then the fence tells them apart.
    servers[0].1.set(MINUTE).unwrap();
    servers[1].1.set(MINUTE).unwrap();
    let next = soon(other.mutex("n").ttl(ms(6_000)).lock()).await.unwrap();
    assert!(next.fence() > guard.fence());
    assert!(matches!(
        soon(guard.lost()).await,
        LossReason::Gone | LossReason::Expired
    ));
    assert!(next.is_held());
    let_go(next).await;
}
