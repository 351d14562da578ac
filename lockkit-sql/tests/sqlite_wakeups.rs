//! Who has to be woken, or told whom to watch, when others die, come past, or end sooner.
#![cfg(feature = "sqlite")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use lockkit_core::{Attempt, Backend, Claim, Converted, Mode, Order, Pick, Primitive};
use lockkit_sql::Sqlite;
use support::*;

const URL: &str = "LOCKKIT_TEST_WAKEUPS_URL";
const CLAIMS: &str = "LOCKKIT_TEST_WAKEUPS_CLAIMS";

fn segment(name: &str, segment: u32) -> Claim {
    let mode = Mode::Segment {
        pick: Pick::Only(segment),
        of: 2,
    };
    Claim {
        order: Order::Fair,
        ..claim_of(Primitive::Segmented, name, mode)
    }
}

fn rw(name: &str, mode: Mode) -> Claim {
    Claim {
        order: Order::Fair,
        ..claim_of(Primitive::ReadWrite, name, mode)
    }
}

/// Run by the tests below in processes of their own: holds until it is killed.
#[tokio::test]
async fn child_that_holds() {
    let (Ok(url), Ok(claims)) = (std::env::var(URL), std::env::var(CLAIMS)) else {
        return;
    };
    let backend = Sqlite::connect(&url).await.unwrap();
    for wanted in claims.split(',') {
        let wanted = match wanted {
            "segment 1" => segment("a", 1),
            name => claim(name),
        };
        hold(&backend, wanted).await;
    }
    println!("\nholding");
    tokio::time::sleep(LONG).await;
}

fn spawn(store: &Store, claims: &str) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_holds", "--nocapture"])
        .env(URL, store.url())
        .env(CLAIMS, claims)
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

/// The first in line follows all who hold, also whoever came after it and took a segment that it
/// does not want; else nobody hears when that one dies.
#[tokio::test]
async fn the_death_of_a_holder_who_came_later_is_heard() {
    let store = Store::new();
    let (one, two, three) = (
        store.client().await,
        store.client().await,
        store.client().await,
    );
    hold(&one, segment("a", 0)).await;
    let mut first = queue(&two, segment("a", 0)).await;
    let late = spawn(&store, "segment 1");
    let mut second = queue(&three, segment("a", 1)).await;
    // Core calls this all the time; here it must not be what looks.
    let listening = tokio::spawn(async move {
        first.changed().await;
        first.attempt().await
    });
    kill(late);
    second.wait().await;
    listening.abort();
}

/// A hold that is detached for a shorter time than its session had left: whoever waits has to look
/// again at the end of that.
#[tokio::test]
async fn a_shorter_expiry_is_told_to_the_first_in_line() {
    let store = Store::new();
    let (one, two) = (store.client().await, store.client().await);
    let (writer, _) = hold(&one, rw("a", Mode::Exclusive)).await;
    let mut reader = queue(&two, rw("a", Mode::Shared)).await;
    one.extend(&writer, SHORT).await;
    reader.changed().await;
    let Attempt::Busy { recheck_after } = reader.attempt().await else {
        panic!("still held")
    };
    assert!(recheck_after.unwrap() <= SHORT, "{recheck_after:?}");
}

/// A conversion that takes a dead writer out of the line lets in the readers behind it.
#[tokio::test]
async fn a_busy_conversion_leaves_nobody_behind_the_dead() {
    let store = Store::new();
    let (one, two, dying) = (
        store.client().await,
        store.client().await,
        store.client().await,
    );
    let (reader, _) = hold(&one, rw("a", Mode::Shared)).await;
    let writer = queue(&dying, rw("a", Mode::Exclusive)).await;
    let behind = queue(&two, rw("a", Mode::Shared)).await;
    // Stopped for longer than its lease.
    let past = "UPDATE lockkit_session SET expires_at = 1 WHERE id =
                (SELECT session FROM lockkit_waiter ORDER BY ticket LIMIT 1)";
    sqlx::query(past)
        .execute(&mut store.sql().await)
        .await
        .unwrap();
    assert_eq!(
        one.convert(&reader, Mode::Exclusive).await.unwrap(),
        Converted::Busy
    );
    assert_eq!(inspect_of(&two, &behind.id).await.holders.len(), 2);
    drop(writer);
}

/// Whoever dies with two locks is buried by those who wait for one of them; those who wait for the
/// other find no file any more.
#[tokio::test]
async fn a_poller_notices_a_death_that_others_cleaned_up_after() {
    let store = Store::with("wakeup=poll");
    let (one, two) = (store.client().await, store.client().await);
    let victim = spawn(&store, "a,b");
    let file = store.session_paths().remove(0);
    let mut early = queue(&one, claim("a")).await;
    let mut late = queue(&two, claim("b")).await;
    // Without a pause, so that nobody looks in between.
    kill(victim);
    std::fs::remove_file(file).unwrap();
    let bury = "DELETE FROM lockkit_session WHERE id = (SELECT session FROM lockkit_lock LIMIT 1)";
    let mut sql = store.sql().await;
    sqlx::query(bury).execute(&mut sql).await.unwrap();
    early.wait().await;
    late.wait().await;
}
