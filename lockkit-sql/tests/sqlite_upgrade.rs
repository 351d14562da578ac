//! Files of earlier versions.
#![cfg(feature = "sqlite")]

mod support;

use lockkit_core::{Backend, Mode, Primitive, Released};
use lockkit_sql::Sqlite;
use support::*;

/// The tables of version 1, as they were.
const VERSION_1: &str = include_str!("support/schema_1.sql");

#[tokio::test]
async fn a_file_of_version_1_goes_on_with_its_holds_fences_and_line() {
    let store = Store::new();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    std::fs::write(store.path(), "").unwrap();
    let mut sql = store.sql().await;
    sqlx::raw_sql(VERSION_1).execute(&mut sql).await.unwrap();
    sqlx::query("INSERT INTO lockkit_meta (id, schema_version, boot) VALUES (1, 1, ?1)")
        .bind(boot.trim())
        .execute(&mut sql)
        .await
        .unwrap();
    let rows = "
        INSERT INTO lockkit_lock (key, attempt, fence, expires_at, label, queued, next_ticket)
        VALUES ('mutex/a.', x'000102030405060708090a0b0c0d0e0f', 41, 9000000000000, '', 1, 1),
               ('mutex/b.', NULL, 7, NULL, '', 0, 0);
        INSERT INTO lockkit_session (id, ttl_ms, expires_at)
        VALUES (x'0f0e0d0c0b0a09080706050403020100', 60000, 9000000000000);
        INSERT INTO lockkit_waiter (key, ticket, session, attempt, fair, since, label)
        VALUES ('mutex/a.', 0, x'0f0e0d0c0b0a09080706050403020100',
                x'ff0102030405060708090a0b0c0d0e0f', 1, 0, '')";
    sqlx::raw_sql(rows).execute(&mut sql).await.unwrap();
    drop(sql);
    // All at once: one of them upgrades.
    let connects = (0..4).map(|_| {
        let url = store.url();
        tokio::spawn(async move { Sqlite::connect(&url).await })
    });
    let connects: Vec<_> = connects.collect();
    let mut clients = Vec::new();
    for connect in connects {
        clients.push(connect.await.unwrap().unwrap());
    }
    let one = &clients[0];
    let seen = inspect(one, "a").await;
    assert_eq!(seen.holders[0].fence.get(), 41);
    assert!(seen.holders[0].detached && !seen.holders[0].asked_to_release);
    assert_eq!(seen.waiters[0].mode, Mode::Exclusive);
    assert_eq!(release(one, &seen.waiters[0].id).await, Released::Done);
    assert_eq!(release(one, &seen.holders[0].id).await, Released::Done);
    assert_eq!(hold(one, claim("a")).await.1.fence.get(), 42);
    assert_eq!(hold(one, claim("b")).await.1.fence.get(), 8);
    let reader = claim_of(Primitive::ReadWrite, "a", Mode::Shared);
    hold(&clients[1], reader).await;
    assert!(
        clients[1]
            .probe()
            .await
            .unwrap()
            .contains(&("schema", "2".into()))
    );
    // Every column is where a new file has it.
    let columns = "SELECT group_concat(m.name || '.' || c.name || c.type || c.\"notnull\" || c.pk)
                     FROM (SELECT * FROM sqlite_schema WHERE type = 'table' ORDER BY name) m,
                          pragma_table_info(m.name) c";
    let new = Store::new();
    drop(new.client().await);
    let mut all = Vec::new();
    for store in [&store, &new] {
        let (columns,): (String,) = sqlx::query_as(columns)
            .fetch_one(&mut store.sql().await)
            .await
            .unwrap();
        all.push(columns);
    }
    assert_eq!(all[0], all[1]);
}
