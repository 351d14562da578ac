//! Mutual exclusion and rising fences between processes, some of which are killed.
#![cfg(feature = "sqlite")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use lockkit_core::{Attempt, Backend, Claim, Order};
use lockkit_sql::Sqlite;
use support::*;

const URL: &str = "LOCKKIT_TEST_COUNTER_URL";
const FILE: &str = "LOCKKIT_TEST_COUNTER_FILE";
const ROUNDS: &str = "LOCKKIT_TEST_COUNTER_ROUNDS";

/// Run by the test below in processes of its own: counts up in a file that only a lock protects.
#[tokio::test]
async fn child_that_counts() {
    let Ok(url) = std::env::var(URL) else { return };
    let file = PathBuf::from(std::env::var(FILE).unwrap());
    let rounds: u32 = std::env::var(ROUNDS).unwrap().parse().unwrap();
    let backend = Sqlite::connect(&url).await.unwrap();
    for round in 0..rounds {
        let order = if round % 2 == 0 {
            Order::Fair
        } else {
            Order::Barging
        };
        let mut attempt = Try::enter(
            &backend,
            Claim {
                order,
                ..claim("counter")
            },
        );
        let grant = loop {
            match attempt.attempt().await {
                Attempt::Held(grant) => break grant,
                Attempt::Busy { recheck_after } => {
                    let patience = recheck_after.unwrap_or(PATIENCE);
                    let _ = tokio::time::timeout(patience, attempt.ticket.changed()).await;
                }
            }
        };
        let (count, fence) = read(&file);
        assert!(grant.fence.get() > fence, "a fence fell");
        // Not atomic on purpose, and slow enough for others to get in the way.
        tokio::task::yield_now().await;
        let next = file.with_extension(std::process::id().to_string());
        fs::write(&next, format!("{} {}", count + 1, grant.fence)).unwrap();
        assert_eq!(read(&file), (count, fence), "somebody else was inside");
        fs::rename(&next, &file).unwrap();
        release(&backend, &attempt.id).await;
    }
    backend.close().await.unwrap();
}

fn read(file: &Path) -> (u64, u64) {
    let text = fs::read_to_string(file).unwrap();
    let (count, fence) = text.split_once(' ').unwrap();
    (count.parse().unwrap(), fence.parse().unwrap())
}

fn spawn(store: &Store, file: &Path, rounds: u32) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_counts"])
        .env(URL, store.url())
        .env(FILE, file)
        .env(ROUNDS, rounds.to_string())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap()
}

#[tokio::test]
async fn processes_take_turns_though_some_are_killed() {
    const WORKERS: u32 = 4;
    const EACH: u32 = 50;
    let store = Store::new();
    let file = store.dir().join("counter");
    fs::write(&file, "0 0").unwrap();
    let mut workers: Vec<Child> = (0..WORKERS).map(|_| spawn(&store, &file, EACH)).collect();
    for _ in 0..3 {
        let mut victim = spawn(&store, &file, u32::MAX);
        tokio::time::sleep(Duration::from_millis(150)).await;
        victim.kill().unwrap();
        victim.wait().unwrap();
    }
    for worker in &mut workers {
        assert!(worker.wait().unwrap().success());
    }
    let (count, fence) = read(&file);
    assert!(
        count >= u64::from(WORKERS * EACH) && fence >= count,
        "{count} {fence}"
    );
    let client = store.client().await;
    hold(&client, at_once("counter")).await;
    assert_eq!(store.count("lockkit_waiter").await, 0);
    assert_eq!(store.count("lockkit_session").await, 1);
}
