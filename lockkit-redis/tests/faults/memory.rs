//! Servers whose memory is full.

use lockkit_core::{ErrorKind, LossReason};
use lockkit_redis::Redis;
use tokio::time::sleep;

use crate::rig::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_full_server_lets_nobody_new_in_and_goes_on_with_what_there_is() {
    let server = server();
    let (holder, waiter) = (client(&server).await, client(&server).await);
    let register = Register::new();
    let guard = holder.mutex("n").ttl(ms(2_000)).lock().await.unwrap();
    let writer = holder
        .read_write("rw")
        .ttl(ms(2_000))
        .write()
        .lock()
        .await
        .unwrap();
    let lock = waiter.mutex("n").ttl(ms(2_000));
    let queued = tokio::spawn(async move { lock.lock().await });
    in_line(&holder, "n", 1).await;
    cli(&server, &["CONFIG", "SET", "maxmemory", "1"]);

    let refused = holder.mutex("new").try_lock().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Full, "{refused}");
    assert!(refused.to_string().contains("maxmemory"), "{refused}");
    let refused = holder.semaphore("new", 3).try_acquire().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Full, "{refused}");
    sleep(ms(3_000)).await;
    assert!(guard.is_held() && writer.is_held(), "it was not renewed");
    assert_eq!(waiting(&holder, "n").await, 1, "the place was not renewed");
    assert!(register.write(&guard));
    let_go(guard).await;
    let guard = soon(queued).await.unwrap().unwrap();
    assert!(register.write(&guard) && guard.is_held());
    let_go(guard).await;
    let_go(writer).await;
    assert_eq!(cli(&server, &["KEYS", "lk:*mutex*"]), "");

    cli(&server, &["CONFIG", "SET", "maxmemory", "0"]);
    register.use_once(&holder.mutex("n"), ms(0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_may_throw_locks_away_is_refused_unless_allowed() {
    let server = server();
    let before = client(&server).await;
    cli(&server, &["CONFIG", "SET", "maxmemory", "100mb"]);
    cli(
        &server,
        &["CONFIG", "SET", "maxmemory-policy", "volatile-lru"],
    );
    let refused = Redis::connect(&server.url()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidConfig);
    assert!(refused.to_string().contains("allow_eviction"), "{refused}");

    let locker = locker(&format!("{}?allow_eviction=true", server.url())).await;
    let register = Register::new();
    let guard = locker.mutex("n").ttl(ms(3_000)).lock().await.unwrap();
    assert!(register.write(&guard));
    let key = key_of(&server, "n");
    // The key of the hold is the only one that may be thrown away.
    cli(&server, &["CONFIG", "SET", "maxmemory", "1"]);
    until("it was thrown away", async || {
        tokio::task::block_in_place(|| server.cli(&["SET", "data", "x"]).is_err());
        cli(&server, &["EXISTS", &key]) == "0"
    })
    .await;
    cli(&server, &["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(soon(guard.lost()).await, LossReason::Gone);
    register.use_once(&before.mutex("n"), ms(0)).await;
    assert!(!register.write(&guard), "a stale write was accepted");
}
