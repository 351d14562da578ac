//! Servers that end, and come back with less than they knew.

use std::time::Duration;

use lockkit_core::{ErrorKind, Fence, LossReason};
use lockkit_servers::redis::{AppendOnly, RedisServer};
use tokio::time::{Instant, sleep};

use crate::rig::*;

#[tokio::test(flavor = "multi_thread")]
async fn fences_rise_after_a_restart_from_an_old_dump_whatever_is_asked_first() {
    // Longer than that of who tries, which is looked into, and shorter, which is not.
    for lease in [60_000, 20_000] {
        fences_rise_after_a_restart(ms(lease)).await;
    }
}

async fn fences_rise_after_a_restart(lease: Duration) {
    let mut server = server();
    let locker = client(&server).await;
    let held = locker.mutex("held").ttl(lease).lock().await.unwrap();
    let name = neighbour("held");
    let mutex = locker.mutex(&name);
    let_go(mutex.lock().await.unwrap()).await;
    cli(&server, &["SAVE"]);
    let mut highest = Fence::new(0);
    for _ in 0..100 {
        let guard = mutex.lock().await.unwrap();
        highest = guard.fence();
        let_go(guard).await;
    }
    tokio::task::block_in_place(|| {
        server.kill().unwrap();
        server.restart().unwrap();
    });
    // Asks the new process for the same bucket without a need for a number, twice.
    until("it is connected again", async || {
        matches!(locker.mutex("held").try_lock().await, Ok(None))
    })
    .await;
    soon(let_go(held)).await;
    let guard = mutex.lock().await.unwrap();
    assert!(guard.fence() > highest, "{} after {highest}", guard.fence());
    let_go(guard).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_without_memory_holders_learn_it_and_waiters_stand_in_line_again() {
    let mut server = server();
    let (holder, waiter) = (client(&server).await, client(&server).await);
    let register = Register::new();
    let guard = holder.mutex("n").ttl(ms(20_000)).lock().await.unwrap();
    assert!(register.write(&guard));
    let queued = waiter.mutex("n").ttl(ms(20_000));
    let queued = tokio::spawn(async move { queued.lock().await });
    in_line(&holder, "n", 1).await;
    tokio::task::block_in_place(|| server.kill().unwrap());
    sleep(ms(1_500)).await;
    tokio::task::block_in_place(|| server.restart().unwrap());
    // Nobody sends a command: both find out by themselves.
    assert_eq!(soon(guard.lost()).await, LossReason::Gone);
    let next = soon(queued).await.unwrap().unwrap();
    assert!(register.write(&next) && next.is_held());
    assert!(!register.write(&guard), "a stale write was accepted");
    // It was lost before: nothing is to be released, and nobody is disturbed.
    was_lost(guard).await;
    assert!(next.is_held());
    let_go(next).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_comes_back_at_once_or_after_25_seconds_is_found_by_those_who_only_wait() {
    for down in [0, 25_000] {
        let mut server = server();
        let (holder, waiter) = (client(&server).await, client(&server).await);
        let register = Register::new();
        let guard = holder.mutex("n").ttl(ms(6_000)).lock().await.unwrap();
        assert!(register.write(&guard));
        let queued: Vec<_> = (0..3)
            .map(|_| {
                let lock = waiter.mutex("n").ttl(ms(6_000)).wait(PATIENCE * 3);
                tokio::spawn(async move { lock.lock().await })
            })
            .collect();
        in_line(&holder, "n", 3).await;
        tokio::task::block_in_place(|| server.kill().unwrap());
        let killed = Instant::now();
        if down > 0 {
            // By the end of its lease at the latest, though nobody can say so.
            assert_eq!(soon(guard.lost()).await, LossReason::Expired);
            assert!(killed.elapsed() < ms(8_000), "{:?}", killed.elapsed());
        }
        sleep(ms(down).saturating_sub(killed.elapsed())).await;
        tokio::task::block_in_place(|| server.restart().unwrap());
        let back = Instant::now();
        soon(guard.lost()).await;
        // Nobody sends a command; all are let in, one after the other.
        let mut queued = queued;
        while !queued.is_empty() {
            let (next, _, rest) = soon(futures_util::future::select_all(queued)).await;
            let next = next.unwrap().unwrap();
            assert!(register.write(&next), "a fence fell after {down} ms");
            assert!(!register.write(&guard), "a stale write was accepted");
            let_go(next).await;
            queued = rest;
        }
        assert!(back.elapsed() < ms(10_000), "{:?}", back.elapsed());
        was_lost(guard).await;
    }
}

/// A log that is written once a second may lack the last second; the second holder is told apart
/// by its fence, because another process gives it out.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_lacks_the_last_second_may_cost_a_hold_and_no_fence_falls() {
    let builder = RedisServer::builder().append_only(AppendOnly::EverySecond);
    let mut server = started(builder);
    let (locker, other) = (client(&server).await, client(&server).await);
    let register = Register::new();
    for round in 0..3 {
        for _ in 0..20 {
            // One whose release is forgotten is back, until its lease ends.
            let lock = locker.mutex("n").ttl(ms(1_000));
            register.use_once(&lock, ms(0)).await;
        }
        let old = locker.mutex("n").ttl(ms(20_000)).lock().await.unwrap();
        assert!(register.write(&old));
        tokio::task::block_in_place(|| {
            server.kill().unwrap();
            if round > 0 {
                lose_the_end_of_the_log(&server, 40 * round);
            }
            server.restart().unwrap();
        });
        until("it is connected again", async || {
            other.probe().await.is_ok() && locker.probe().await.is_ok()
        })
        .await;
        let patience = if round == 0 { ms(1_000) } else { ms(8_000) };
        let next = soon(other.mutex("n").ttl(ms(20_000)).wait(patience).lock()).await;
        match next {
            // It was forgotten.
            Ok(next) => {
                assert!(next.fence() > old.fence(), "a fence fell");
                assert!(register.write(&next) && !register.write(&old));
                assert_eq!(soon(old.lost()).await, LossReason::Gone);
                was_lost(old).await;
                let_go(next).await;
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
                assert_eq!(round, 0, "it was to be forgotten");
                until("it is believed in again", async || old.is_held()).await;
                let_go(old).await;
            }
        }
    }
    register.is_sound();
}

/// Cuts so many lines off the log, as a crash of the machine does before they reach the disk. The
/// server then finds half a command and leaves that away.
fn lose_the_end_of_the_log(server: &RedisServer, lines: usize) {
    let log = server.directory().join("appendonlydir");
    let files = std::fs::read_dir(log)
        .unwrap()
        .map(|file| file.unwrap().path());
    let is_log = |file: &std::path::PathBuf| file.to_string_lossy().ends_with(".incr.aof");
    let file = files.filter(is_log).max().unwrap();
    let text = std::fs::read(&file).unwrap();
    let ends = text.iter().enumerate().rev();
    let mut ends = ends.filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
    let end = ends.nth(lines).unwrap();
    std::fs::write(&file, &text[..=end]).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_outlives_a_restart_with_a_log_and_no_fence_falls() {
    let builder = RedisServer::builder().append_only(AppendOnly::Always);
    let mut server = started(builder);
    let locker = client(&server).await;
    let register = Register::new();
    for _ in 0..3 {
        let held = locker.mutex("held").ttl(ms(60_000)).lock().await.unwrap();
        register.use_once(&locker.mutex("n"), ms(0)).await;
        assert!(register.write(&held) || held.name().as_str() == "held");
        tokio::task::block_in_place(|| {
            server.kill().unwrap();
            server.restart().unwrap();
        });
        until("the hold is believed in again", async || held.is_held()).await;
        let uses = &register;
        until("it is connected again", async || {
            locker.probe().await.is_ok()
        })
        .await;
        uses.use_once(&locker.mutex("n"), ms(0)).await;
        assert!(held.is_held());
        let_go(held).await;
    }
    register.is_sound();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_that_is_shorter_than_the_lease_costs_nobody_a_lock_on_a_server_that_remembers() {
    let builder = RedisServer::builder().append_only(AppendOnly::EverySecond);
    let mut server = started(builder);
    let locker = client(&server).await;
    let guard = locker.mutex("n").ttl(ms(12_000)).lock().await.unwrap();
    sleep(ms(1_200)).await;
    tokio::task::block_in_place(|| server.stop().unwrap());
    sleep(ms(2_000)).await;
    tokio::task::block_in_place(|| server.restart().unwrap());
    sleep(ms(1_500)).await;
    until("it is believed in again", async || guard.is_held()).await;
    let_go(guard).await;
}

/// What keys are like after a failover to a replica that lags behind.
#[tokio::test(flavor = "multi_thread")]
async fn a_hold_of_which_a_server_that_took_over_knows_only_the_place_in_line_is_lost() {
    let server = server();
    let (holder, waiter) = (client(&server).await, client(&server).await);
    let mut redis = raw(&server).await;
    let before = holder.mutex("n").ttl(ms(60_000)).lock().await.unwrap();
    let writer = holder
        .read_write("n")
        .ttl(ms(60_000))
        .write()
        .lock()
        .await
        .unwrap();
    let lock = waiter.mutex("n").ttl(ms(2_000));
    let next = tokio::spawn(async move { lock.lock().await.unwrap() });
    let lock = waiter.read_write("n").ttl(ms(2_000)).write();
    let second = tokio::spawn(async move { lock.lock().await.unwrap() });
    in_line(&holder, "n", 1).await;
    let line = holder.read_write("n").resource().unwrap();
    until("the second stands in line", async || {
        holder.inspect(&line).await.unwrap().waiters.len() == 1
    })
    .await;
    let keys = cli(&server, &["KEYS", "lk:*/n.*"]);
    let mut kept = Vec::new();
    for key in keys.lines() {
        let dump: Vec<u8> = redis::cmd("DUMP")
            .arg(key)
            .query_async(&mut redis)
            .await
            .unwrap();
        kept.push((key, dump));
    }
    assert!(kept.len() >= 7, "{keys}");
    let_go(before).await;
    let_go(writer).await;
    let (next, second) = (soon(next).await.unwrap(), soon(second).await.unwrap());
    for (key, dump) in kept {
        let _: () = redis::cmd("RESTORE")
            .arg(key)
            .arg(60_000)
            .arg(dump)
            .arg("REPLACE")
            .query_async(&mut redis)
            .await
            .unwrap();
    }
    assert_eq!(soon(next.lost()).await, LossReason::Gone);
    assert_eq!(soon(second.lost()).await, LossReason::Gone);
}

/// Another name of the same bucket.
fn neighbour(name: &str) -> String {
    let bucket = |name: &str| {
        let crc = crc::Crc::<u16>::new(&crc::CRC_16_XMODEM);
        crc.checksum(mutex(name).key().as_bytes()) % 256
    };
    let mut names = (0..).map(|number| format!("other{number}"));
    names.find(|other| bucket(other) == bucket(name)).unwrap()
}
