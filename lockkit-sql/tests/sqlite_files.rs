//! Files that are not what they should be, or not there any more, and restarts.
#![cfg(feature = "sqlite")]

mod support;

use std::fs;
use std::time::Duration;

use lockkit_core::{Backend, ErrorKind, Locker, LossReason, Renewal};
use lockkit_sql::Sqlite;
use support::*;

#[tokio::test]
async fn a_restart_of_the_machine_frees_everything() {
    let store = Store::new();
    let one = store.client().await;
    let (held, grant) = hold(&one, claim("a")).await;
    let (detached, _) = hold(&one, claim("b")).await;
    assert_renewed(&one.extend(&detached, LONG).await);
    let _waiter = queue(&one, claim("a")).await;
    sqlx::query("UPDATE lockkit_meta SET boot = 'another'")
        .execute(&mut store.sql().await)
        .await
        .unwrap();
    let two = store.client().await;
    assert!(two.list("").await.unwrap().is_empty());
    let (_, later) = hold(&two, at_once("a")).await;
    assert!(later.fence > grant.fence, "fences go on");
    hold(&two, at_once("b")).await;
    assert_gone(&renew(&one, &held).await);
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_untouched() {
    let store = Store::new();
    drop(store.client().await);
    sqlx::query("UPDATE lockkit_meta SET schema_version = 3, boot = 'another'")
        .execute(&mut store.sql().await)
        .await
        .unwrap();
    let error = Sqlite::connect(&store.url()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(
        error.message().contains("schema 3, this one knows 2"),
        "{error}"
    );
    let (boot,): (String,) = sqlx::query_as("SELECT boot FROM lockkit_meta")
        .fetch_one(&mut store.sql().await)
        .await
        .unwrap();
    assert_eq!(boot, "another");
}

#[tokio::test]
async fn what_is_no_database_is_refused_and_untouched() {
    let store = Store::new();
    let text = "dear diary, ".repeat(1000);
    fs::write(store.path(), &text).unwrap();
    let error = Sqlite::connect(&store.url()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("locks.db"), "{error}");
    assert_eq!(fs::read_to_string(store.path()).unwrap(), text);
    assert!(!store.dir().join("locks.db-wal").exists());
}

#[tokio::test]
async fn somebody_elses_database_may_be_shared() {
    let store = Store::with("create=false");
    assert_eq!(
        Sqlite::connect(&store.url()).await.unwrap_err().kind(),
        ErrorKind::InvalidConfig
    );
    fs::write(store.path(), "").unwrap();
    sqlx::query("CREATE TABLE orders (id INTEGER)")
        .execute(&mut store.sql().await)
        .await
        .unwrap();
    let one = store.client().await;
    hold(&one, claim("a")).await;
    assert_eq!(store.count("orders").await, 0);
}

#[tokio::test]
async fn tables_that_vanish_are_told_as_damage() {
    let store = Store::new();
    let one = store.client().await;
    sqlx::query("DROP TABLE lockkit_lock")
        .execute(&mut store.sql().await)
        .await
        .unwrap();
    let error = one.enter(claim("a")).unwrap().attempt().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}

#[tokio::test]
async fn a_removed_file_loses_every_hold_and_the_next_claim_makes_a_new_one() {
    let store = Store::new();
    let locker = Locker::new(store.client().await).unwrap();
    let guard = locker.mutex("a").lock().await.unwrap();
    for name in ["locks.db", "locks.db-wal", "locks.db-shm"] {
        fs::remove_file(store.dir().join(name)).unwrap();
    }
    let reason = tokio::time::timeout(PATIENCE, guard.lost())
        .await
        .expect("not told");
    assert_eq!(reason, LossReason::Gone);
    drop(guard);
    let again = locker.mutex("a").lock().await.unwrap();
    assert!(again.is_held() && store.path().exists());
    assert!(matches!(
        again.unlock().await.unwrap(),
        lockkit_core::Unlocked::Clean
    ));
    locker.close().await.unwrap();
}

#[tokio::test]
async fn a_writer_that_never_ends_is_told_in_time() {
    let store = Store::with("busy_timeout=100ms");
    let (one, two) = (store.client().await, store.client().await);
    let (id, _) = hold(&one, claim("a")).await;
    let mut sql = store.sql().await;
    sqlx::query("BEGIN IMMEDIATE")
        .execute(&mut sql)
        .await
        .unwrap();
    let mut attempt = Try::enter(&two, claim("b"));
    assert_eq!(
        attempt.ticket.attempt().await.unwrap_err().kind(),
        ErrorKind::Unavailable
    );
    assert!(matches!(renew(&one, &id).await, Renewal::Unknown(_)));
    assert_eq!(inspect(&two, "a").await.holders.len(), 1, "looking goes on");
    sqlx::query("ROLLBACK").execute(&mut sql).await.unwrap();
    attempt.held().await;
    assert_renewed(&renew(&one, &id).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_make_one_database_at_once() {
    let store = Store::new();
    let connects: Vec<_> = (0..8)
        .map(|_| {
            let url = store.url();
            tokio::spawn(async move { Sqlite::connect(&url).await })
        })
        .collect();
    let mut clients = Vec::new();
    for connect in connects {
        clients.push(connect.await.unwrap().unwrap());
    }
    for (i, client) in clients.iter().enumerate() {
        hold(client, claim(&format!("a{i}"))).await;
    }
    assert_eq!(clients[0].list("").await.unwrap().len(), 8);
}

#[tokio::test]
async fn connecting_sweeps_what_the_dead_left() {
    let store = Store::new();
    let one = store.client().await;
    hold(&one, claim("a")).await;
    let two = store.client().await;
    hold(&two, claim("b")).await;
    drop(one);
    assert_eq!(store.session_files(), 2);
    // The file is closed by a task.
    for _ in 0..200 {
        store.client().await;
        if store.session_files() == 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(store.count("lockkit_session").await, 1);
    assert_renewed(&renew(&two, &two.list("b").await.unwrap()[0].holders[0].id).await);
    assert!(two.list("a").await.unwrap().is_empty());
}
