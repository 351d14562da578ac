//! Deaths of one of several holders, in processes of their own.
#![cfg(feature = "sqlite")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use lockkit_core::{Claim, Mode, Primitive};
use lockkit_sql::Sqlite;
use support::*;

const URL: &str = "LOCKKIT_TEST_ONE_OF_SEVERAL_URL";
const KIND: &str = "LOCKKIT_TEST_ONE_OF_SEVERAL_KIND";

fn one_of_two(kind: &str) -> Claim {
    match kind {
        "reader" => claim_of(Primitive::ReadWrite, "a", Mode::Shared),
        _ => claim_of(
            Primitive::Semaphore,
            "a",
            Mode::Permits { count: 1, limit: 2 },
        ),
    }
}

/// Run by the tests below in processes of their own: holds until it is killed.
#[tokio::test]
async fn child_that_holds_one_of_several() {
    let (Ok(url), Ok(kind)) = (std::env::var(URL), std::env::var(KIND)) else {
        return;
    };
    let backend = Sqlite::connect(&url).await.unwrap();
    let short = Claim {
        ttl: if kind == "stopped" { SHORT } else { LONG },
        ..one_of_two(&kind)
    };
    hold(&backend, short).await;
    println!("\nholding");
    tokio::time::sleep(LONG).await;
}

fn spawn(store: &Store, kind: &str) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_holds_one_of_several", "--nocapture"])
        .env(URL, store.url())
        .env(KIND, kind)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "holding"));
    child
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[tokio::test]
async fn whichever_permit_holder_is_killed_the_first_in_line_enters() {
    for first_dies in [true, false] {
        let store = Store::new();
        let (one, two) = (spawn(&store, "permit"), spawn(&store, "permit"));
        let backend = store.client().await;
        let mut waiter = queue(&backend, one_of_two("permit")).await;
        let other = store.client().await;
        let mut behind = queue(&other, one_of_two("permit")).await;
        let (victim, survivor) = if first_dies { (one, two) } else { (two, one) };
        kill(victim);
        waiter.wait().await;
        behind.stays_asleep().await;
        // Behind the others now: it has to hear of either's death.
        kill(survivor);
        behind.wait().await;
        assert_eq!(store.count("lockkit_holder").await, 2);
    }
}

#[tokio::test]
async fn a_writer_enters_when_the_last_of_the_readers_is_killed() {
    let store = Store::new();
    let (one, two) = (spawn(&store, "reader"), spawn(&store, "reader"));
    let backend = store.client().await;
    let writer = claim_of(Primitive::ReadWrite, "a", Mode::Exclusive);
    let mut writer = queue(&backend, writer).await;
    kill(one);
    // It hears of either's death.
    writer.changed().await;
    writer.busy().await;
    kill(two);
    writer.wait().await;
    assert_eq!(store.count("lockkit_session").await, 1);
}

#[tokio::test]
async fn a_dead_writer_in_line_stops_no_reader_behind_it() {
    let store = Store::new();
    let (one, two) = (store.client().await, store.client().await);
    hold(&one, one_of_two("reader")).await;
    let dying = store.client().await;
    let writer = queue(&dying, claim_of(Primitive::ReadWrite, "a", Mode::Exclusive)).await;
    let reader = Claim {
        order: lockkit_core::Order::Fair,
        ..one_of_two("reader")
    };
    let mut reader = queue(&two, reader).await;
    drop((writer, dying));
    reader.wait().await;
    assert_eq!(store.count("lockkit_waiter").await, 0);
}

#[tokio::test]
async fn who_died_at_a_latch_leaves_nothing_once_somebody_connects() {
    let store = Store::new();
    let one = store.client().await;
    let dying = store.client().await;
    let latch = queue(&dying, claim_of(Primitive::Latch, "a", Mode::Shared)).await;
    hold(&dying, one_of_two("reader")).await;
    drop((latch, dying));
    // Buried for the sake of another name, which leaves its place at the latch without a session.
    hold(&one, claim_of(Primitive::ReadWrite, "a", Mode::Exclusive)).await;
    assert_eq!(store.count("lockkit_waiter").await, 1);
    let _two = store.client().await;
    assert_eq!(store.count("lockkit_waiter").await, 0);
}

#[tokio::test]
async fn a_stopped_holder_loses_its_permit_with_its_lease() {
    let store = Store::new();
    let child = spawn(&store, "stopped");
    let backend = store.client().await;
    hold(&backend, one_of_two("permit")).await;
    let stop = |signal: &str| {
        let sent = Command::new("kill")
            .args([signal, &child.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
    };
    stop("-STOP");
    tokio::time::sleep(SHORT + SHORT / 2).await;
    hold(&backend, one_of_two("permit")).await;
    stop("-CONT");
    kill(child);
}
