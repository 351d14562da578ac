//! Messages that do not arrive.

use lockkit_core::{Guard, Locker, Result};
use lockkit_servers::redis::RedisServer;
use lockkit_testkit::Flow;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::rig::*;

/// Stands in line for a mutex; returns once it does.
async fn queued(locker: &Locker, ttl: u64) -> JoinHandle<Result<Guard>> {
    let before = waiting(locker, "n").await;
    let lock = locker.mutex("n").ttl(ms(ttl));
    let waiter = tokio::spawn(async move { lock.lock().await });
    in_line(locker, "n", before + 1).await;
    waiter
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiter_whose_messages_are_lost_finds_out_by_itself_that_it_was_let_in() {
    let server = server();
    let (proxy, url) = proxied(&server).await;
    let (holder, waiter) = (client(&server).await, locker(&url).await);
    let register = Register::new();
    let guard = holder.mutex("n").ttl(ms(20_000)).lock().await.unwrap();
    assert!(register.write(&guard));
    let queued = queued(&waiter, 3_000).await;
    proxy.set_replies(Flow::SwallowPushes);
    let_go(guard).await;
    let freed = Instant::now();
    let guard = soon(queued).await.unwrap().unwrap();
    assert!(freed.elapsed() < ms(3_000 + 2_000), "{:?}", freed.elapsed());
    assert!(register.write(&guard) && guard.is_held());
    let_go(guard).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_cut_off_when_its_turn_comes_is_passed_over_and_keeps_its_place() {
    let server = server();
    let (proxy, url) = proxied(&server).await;
    let (here, away) = (client(&server).await, locker(&url).await);
    let register = Register::new();
    let first = here.mutex("n").ttl(ms(30_000)).lock().await.unwrap();
    let cut_off = queued(&away, 30_000).await;
    let second = queued(&here, 30_000).await;
    cut(&proxy).await;
    until("the server knows", async || {
        cli(&server, &["PUBSUB", "CHANNELS", "lk:in:*"])
            .lines()
            .count()
            == 1
    })
    .await;
    assert!(register.write(&first));
    let_go(first).await;
    let second = soon(second).await.unwrap().unwrap();
    assert!(register.write(&second));
    let third = queued(&here, 30_000).await;
    proxy.pass().await.unwrap();
    in_line(&here, "n", 2).await;
    let_go(second).await;
    let returned = soon(cut_off).await.unwrap().unwrap();
    assert!(register.write(&returned));
    assert!(!third.is_finished(), "somebody who came later passed it");
    let_go(returned).await;
    let third = soon(third).await.unwrap().unwrap();
    assert!(register.write(&third));
    let_go(third).await;
}

/// A server on which `deaf` may not hear and say anything.
fn with_a_deaf_user() -> RedisServer {
    let rules = "~* resetchannels +@all";
    started(RedisServer::builder().user("deaf", "deaf", rules))
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_listen_asks_from_time_to_time_until_it_may() {
    let server = with_a_deaf_user();
    let deaf = locker(&server.url_of("deaf", "deaf")).await;
    let other = client(&server).await;
    let register = Register::new();
    let channels = || {
        cli(&server, &["PUBSUB", "CHANNELS", "lk:in:*"])
            .lines()
            .count()
    };
    assert_eq!(channels(), 1, "only the other one listens");

    let guard = other.mutex("n").ttl(ms(30_000)).lock().await.unwrap();
    let waiter = queued(&deaf, 30_000).await;
    assert!(register.write(&guard));
    let_go(guard).await;
    let guard = soon(waiter).await.unwrap().unwrap();
    assert!(register.write(&guard));
    // It may not tell the next one either, who finds out while it renews its place.
    let waiter = queued(&other, 3_000).await;
    let_go(guard).await;
    let guard = soon(waiter).await.unwrap().unwrap();
    assert!(register.write(&guard));
    let_go(guard).await;

    cli(&server, &["ACL", "SETUSER", "deaf", "allchannels"]);
    cli(&server, &["CLIENT", "KILL", "USER", "deaf"]);
    until("it listens", async || channels() == 2).await;
    let guard = other.mutex("n").ttl(ms(30_000)).lock().await.unwrap();
    let waiter = queued(&deaf, 30_000).await;
    cli(&server, &["CONFIG", "RESETSTAT"]);
    let_go(guard).await;
    let_go(soon(waiter).await.unwrap().unwrap()).await;
    assert!(calls(&server, "publish") >= 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_flooded_with_messages_connects_again_and_misses_nothing() {
    let server = server();
    let (holder, waiter) = (client(&server).await, client(&server).await);
    let held = waiter.mutex("held").ttl(ms(30_000)).lock().await.unwrap();
    let guard = holder.mutex("n").ttl(ms(30_000)).lock().await.unwrap();
    let queued = queued(&waiter, 30_000).await;
    cli(
        &server,
        &[
            "CONFIG",
            "SET",
            "client-output-buffer-limit",
            "pubsub 64kb 0 0",
        ],
    );
    let mut operator = raw(&server).await;
    let noise = "x".repeat(4 << 20);
    let channels = cli(&server, &["PUBSUB", "CHANNELS", "lk:in:*"]);
    for channel in channels.lines() {
        let _: i64 = redis::cmd("PUBLISH")
            .arg(&[channel, &noise])
            .query_async(&mut operator)
            .await
            .unwrap();
    }
    // Its connection may break as well; then it is released in the background.
    let _ = guard.unlock().await;
    let guard = soon(queued).await.unwrap().unwrap();
    let evicted = cli(&server, &["INFO", "stats"]);
    assert!(!evicted.contains("client_output_buffer_limit_disconnections:0"));
    let_go(guard).await;
    sleep(ms(300)).await;
    assert!(held.is_held());
    let_go(held).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_strangers_say_on_the_channel_of_a_client_changes_nothing() {
    let server = server();
    let locker = client(&server).await;
    let guard = locker.mutex("n").ttl(ms(30_000)).lock().await.unwrap();
    let waiter = queued(&locker, 30_000).await;
    let channel = cli(&server, &["PUBSUB", "CHANNELS", "lk:in:*"]);
    let mut operator = raw(&server).await;
    let stranger = *b"0123456789abcdef";
    for letter in [b'g', b'w', b'e', b'a', b'?'] {
        for rest in [
            &b""[..],
            b"7::1",
            b"99999999999999999999:x:y",
            b"mutex/n.",
            b"\xff\xfe",
        ] {
            let message = [&[letter][..], &stranger, rest].concat();
            let _: i64 = redis::cmd("PUBLISH")
                .arg(&channel)
                .arg(message)
                .query_async(&mut operator)
                .await
                .unwrap();
        }
    }
    sleep(ms(300)).await;
    assert!(guard.is_held() && !guard.is_revocation_requested() && !waiter.is_finished());
    let_go(guard).await;
    let_go(soon(waiter).await.unwrap().unwrap()).await;
}
