//! Clocks of servers that jump.

use lockkit_core::LossReason;
use tokio::time::Instant;

use crate::rig::*;

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
