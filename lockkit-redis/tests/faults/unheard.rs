//! What no message tells, and somebody has to find out all the same.

use std::collections::HashSet;
use std::time::Duration;

use lockkit_core::{Guard, Locker, LockerOptions, Primitive, Resource, Result};
use lockkit_servers::redis::RedisServer;
use lockkit_testkit::Flow;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::rig::*;

/// Far below the half minute after which a waiter looks in any case.
const SOONER: Duration = ms(15_000);

/// Stands in line for so many permits of `s`; returns once it does.
async fn queued(locker: &Locker, limit: u32, ttl: u64, permits: u32) -> JoinHandle<Result<Guard>> {
    let waiting = async || locker.inspect(&permits_of_s()).await.unwrap().waiters.len();
    let before = waiting().await;
    let semaphore = locker.semaphore("s", limit).ttl(ms(ttl));
    let waiter = tokio::spawn(async move { semaphore.acquire_many(permits).await });
    until("the line", async || waiting().await == before + 1).await;
    waiter
}

async fn permit_of(locker: &Locker, limit: u32) -> Guard {
    let semaphore = locker.semaphore("s", limit).ttl(ms(60_000));
    semaphore.acquire().await.unwrap()
}

fn permits_of_s() -> Resource {
    Resource::new(Primitive::Semaphore, "s".parse().unwrap())
}

/// From which connection each script came that was about one of these names.
async fn scripts_about(server: &RedisServer, names: &[&str], time: Duration) -> Vec<String> {
    let mut feed = TcpStream::connect(server.address()).await.unwrap();
    feed.write_all(b"MONITOR\r\n").await.unwrap();
    let mut lines = BufReader::new(feed).split(b'\n');
    let mut scripts = Vec::new();
    let listening = async {
        while let Some(line) = lines.next_segment().await.unwrap() {
            // As in `+1700000000.123456 [0 127.0.0.1:40000] "EVALSHA" …`.
            let line = String::from_utf8_lossy(&line);
            let words: Vec<&str> = line.splitn(4, ' ').collect();
            let [_, _, connection, command] = words[..] else {
                continue;
            };
            let is_about = names.iter().any(|name| command.contains(name));
            if command.starts_with("\"EVALSHA\"") && is_about {
                scripts.push(connection.to_owned());
            }
        }
    };
    assert!(timeout(time, listening).await.is_err(), "it goes on");
    scripts
}

#[tokio::test(flavor = "multi_thread")]
async fn who_saw_a_long_lease_finds_out_that_a_shorter_one_after_it_has_run_out() {
    let server = server();
    let (proxy, url) = proxied(&server).await;
    let (here, away) = (client(&server).await, locker(&url).await);
    let first = here.mutex("n").ttl(ms(60_000)).lock().await.unwrap();
    let permit = permit_of(&here, 1).await;
    let lock = away.mutex("n").ttl(ms(1_500));
    let doomed = tokio::spawn(async move { lock.lock().await });
    in_line(&here, "n", 1).await;
    let doomed_too = queued(&away, 1, 1_500, 1).await;
    let lock = here.mutex("n").ttl(ms(3_000));
    let next = tokio::spawn(async move { lock.lock().await });
    in_line(&here, "n", 2).await;
    let next_permit = queued(&here, 1, 3_000, 1).await;
    // The server does not know that who comes first hears nothing any more.
    proxy.set(Flow::Stall);
    let freed = Instant::now();
    let_go(first).await;
    let_go(permit).await;
    let_go(soon(next).await.unwrap().unwrap()).await;
    let_go(soon(next_permit).await.unwrap().unwrap()).await;
    assert!(freed.elapsed() < SOONER, "{:?}", freed.elapsed());
    doomed.abort();
    doomed_too.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn who_stands_behind_a_place_that_has_run_out_finds_out() {
    let server = server();
    let (proxy, url) = proxied(&server).await;
    let (here, away) = (client(&server).await, locker(&url).await);
    let one = permit_of(&here, 2).await;
    let first = queued(&here, 2, 60_000, 2).await;
    let doomed = queued(&away, 2, 1_500, 2).await;
    let next = queued(&here, 2, 3_000, 1).await;
    proxy.set(Flow::Stall);
    let withdrawn = Instant::now();
    first.abort();
    let_go(soon(next).await.unwrap().unwrap()).await;
    assert!(withdrawn.elapsed() < SOONER, "{:?}", withdrawn.elapsed());
    assert!(one.is_held());
    let_go(one).await;
    doomed.abort();
}

/// Nor do those who wait ask all the time.
#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_a_lock_that_is_held_asks_no_more_than_before() {
    let server = server();
    let locker = client(&server).await;
    let held = locker.mutex("n").ttl(ms(60_000)).lock().await.unwrap();
    let permit = permit_of(&locker, 1).await;
    let lock = locker.mutex("n").ttl(ms(1_500));
    let waiter = tokio::spawn(async move { lock.lock().await });
    in_line(&locker, "n", 1).await;
    let latch = locker.latch("l").ttl(ms(1_500));
    assert!(latch.try_set(1).await.unwrap());
    let at_latch = tokio::spawn({
        let latch = latch.clone();
        async move { latch.wait().await }
    });
    let for_permit = queued(&locker, 1, 1_500, 1).await;
    // Renewals have a connection of their own; attempts come on another.
    let scripts = scripts_about(&server, &["mutex/n.", "semaphore/s."], ms(3_000)).await;
    assert!(scripts.len() >= 2, "the places are renewed: {scripts:?}");
    let connections: HashSet<&str> = scripts.iter().map(String::as_str).collect();
    assert_eq!(connections.len(), 1, "{scripts:?}");
    latch.count_down("a").await.unwrap();
    soon(at_latch).await.unwrap().unwrap();
    let_go(held).await;
    let_go(permit).await;
    let_go(soon(waiter).await.unwrap().unwrap()).await;
    let_go(soon(for_permit).await.unwrap().unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_cut_off_when_it_was_asked_to_let_go_learns_of_it_when_it_is_back() {
    let server = server();
    let (proxy, url) = proxied(&server).await;
    let (here, away) = (client(&server).await, locker(&url).await);
    let held = away.mutex("n").ttl(ms(60_000)).lock().await.unwrap();
    let permit = permit_of(&away, 2).await;
    let other = permit_of(&away, 2).await;
    cut(&proxy).await;
    until("the server knows", async || {
        let channels = cli(&server, &["PUBSUB", "CHANNELS", "lk:in:*"]);
        channels.lines().count() == 1
    })
    .await;
    assert_eq!(here.request_release(&mutex("n")).await.unwrap(), 1);
    assert_eq!(here.request_release(&permits_of_s()).await.unwrap(), 2);
    sleep(ms(200)).await;
    let guards = [held, permit, other];
    assert!(guards.iter().all(|guard| !guard.is_revocation_requested()));
    proxy.pass().await.unwrap();
    for guard in guards {
        soon(guard.revocation_requested()).await;
        assert!(guard.is_held());
        let_go(guard).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_hears_no_message_learns_by_a_renewal_that_it_is_asked_to_let_go() {
    let server = server();
    let (proxy, url) = proxied(&server).await;
    let (here, away) = (client(&server).await, locker(&url).await);
    let simple = format!("{}?strategy=simple", server.url());
    let simple = lockkit_redis::connect(&simple).await.unwrap();
    let simple = Locker::with_backend(simple.into(), LockerOptions::default()).unwrap();
    let guards = [
        away.mutex("n").ttl(ms(3_000)).lock().await.unwrap(),
        permit_of(&away, 1).await,
        simple.mutex("m").ttl(ms(3_000)).lock().await.unwrap(),
    ];
    let waiter = queued(&away, 1, 3_000, 1).await;
    proxy.set_replies(Flow::SwallowPushes);
    for guard in guards {
        let resource = guard.id().resource().clone();
        let is_permit = resource.primitive() == Primitive::Semaphore;
        assert_eq!(here.request_release(&resource).await.unwrap(), 1);
        if !is_permit {
            soon(guard.revocation_requested()).await;
        }
        let_go(guard).await;
    }
    // One that was let in, does not know it yet, and is asked already.
    until("it was let in", async || {
        let found = here.inspect(&permits_of_s()).await.unwrap();
        found.waiters.is_empty() && found.holders.len() == 1
    })
    .await;
    assert_eq!(here.request_release(&permits_of_s()).await.unwrap(), 1);
    let guard = soon(waiter).await.unwrap().unwrap();
    soon(guard.revocation_requested()).await;
    let_go(guard).await;
}
