//! Renewals, in time and too late.

use futures_util::future::join_all;
use lockkit_core::{LossReason, Owner};
use lockkit_testkit::Flow;
use tokio::time::sleep;

use crate::rig::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_that_ran_out_while_its_renewals_hung_is_not_revived_by_them() {
    let server = server();
    let (proxy, url) = proxied(&server).await;
    let (away, here) = (locker(&url).await, client(&server).await);
    let register = Register::new();
    let guard = away.mutex("n").ttl(ms(2_000)).lock().await.unwrap();
    sleep(ms(1_000)).await;
    assert!(register.write(&guard) && guard.is_held());
    proxy.set(Flow::Stall);
    assert_eq!(soon(guard.lost()).await, LossReason::Expired);
    assert!(guard.remaining().is_zero());
    let next = soon(here.mutex("n").ttl(ms(20_000)).lock()).await.unwrap();
    assert!(register.write(&next));
    proxy.pass().await.unwrap();
    until("it is connected again", async || away.probe().await.is_ok()).await;
    was_lost(guard).await;
    sleep(ms(300)).await;
    assert!(next.is_held());
    let holders = here.inspect(&mutex("n")).await.unwrap().holders;
    assert_eq!(holders.len(), 1);
    assert_eq!(holders[0].fence, next.fence());
    let_go(next).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn renewals_that_race_with_releases_and_cancellations_leave_no_immortal_lock() {
    let server = server();
    let locker = client(&server).await;
    let register = Register::new();
    // Renewals are due after a third: about when these let go.
    let tasks = (0..40).map(|task| {
        let lock = locker.mutex(format!("n{}", task % 20)).ttl(ms(100));
        let register = &register;
        async move {
            for round in 0..60_u64 {
                let Ok(guard) = lock.lock().await else {
                    continue;
                };
                let fence = guard.fence();
                sleep(ms(25 + (round + task) % 20)).await;
                match round % 3 {
                    0 => drop(guard),
                    1 => drop(guard.unlock().await),
                    _ => {
                        let _ = tokio::time::timeout(ms(0), guard.unlock()).await;
                    }
                }
                let _ = (register, fence);
            }
        }
    });
    soon(join_all(tasks)).await;
    sleep(ms(1_500)).await;
    assert_eq!(cli(&server, &["KEYS", "lk:*mutex*"]), "");
    let before = calls(&server, "pexpire");
    sleep(ms(500)).await;
    assert_eq!(calls(&server, "pexpire"), before, "somebody still renews");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_locks_again_for_a_shorter_time_keeps_its_lease() {
    let server = server();
    let locker = client(&server).await;
    let owner = Owner::new();
    let outer = locker
        .mutex("n")
        .ttl(ms(60_000))
        .owner(&owner)
        .lock()
        .await
        .unwrap();
    let inner = locker
        .mutex("n")
        .ttl(ms(500))
        .owner(&owner)
        .lock()
        .await
        .unwrap();
    assert_eq!(inner.fence(), outer.fence());
    let left = async || -> i64 {
        cli(&server, &["PTTL", &key_of(&server, "n")])
            .parse()
            .unwrap()
    };
    assert!(left().await > 30_000);
    let_go(inner).await;
    sleep(ms(700)).await;
    assert!(left().await > 30_000 && outer.is_held());
    let_go(outer).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_holds_on_a_slow_network_are_renewed_in_batches_and_none_is_missed() {
    const HOLDS: usize = 10_000;
    let server = server();
    let (proxy, url) = proxied(&server).await;
    let locker = locker(&url).await;
    let locks = (0..HOLDS).map(|number| {
        let lock = locker.mutex(format!("n{number}")).ttl(ms(9_000));
        async move { lock.lock().await.unwrap() }
    });
    let guards = soon(join_all(locks)).await;
    proxy.set(Flow::Delay(ms(25)));
    sleep(ms(500)).await;
    cli(&server, &["CONFIG", "RESETSTAT"]);
    sleep(ms(10_000)).await;
    assert_eq!(guards.iter().filter(|guard| !guard.is_held()).count(), 0);
    let (scripts, keys) = (calls(&server, "evalsha"), calls(&server, "pexpire"));
    assert!(keys >= 2 * HOLDS as u64, "{keys} renewals");
    assert!(scripts <= keys / 50, "{scripts} scripts for {keys} keys");
    // The server does one thing at a time: no script may keep the others waiting.
    let stats = cli(&server, &["INFO", "commandstats"]);
    let line = stats
        .lines()
        .find(|line| line.starts_with("cmdstat_evalsha:"))
        .unwrap();
    let mean: f64 = line
        .split("usec_per_call=")
        .nth(1)
        .unwrap()
        .split(',')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    assert!(mean < 5_000.0, "{mean} us for one script");
    proxy.set(Flow::Pass);
    drop(guards);
    soon(locker.close()).await.unwrap();
    assert_eq!(cli(&server, &["KEYS", "lk:*mutex*"]), "");
}
