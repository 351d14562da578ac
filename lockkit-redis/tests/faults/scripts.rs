//! Servers that forget scripts.

use std::time::Duration;

use futures_util::future::join_all;
use lockkit_core::ErrorKind;
use lockkit_servers::redis::RedisServer;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::rig::*;

/// Has the server forget all scripts, again and again.
async fn forgetful(server: &RedisServer, pause: Duration) -> JoinHandle<()> {
    let mut redis = raw(server).await;
    tokio::spawn(async move {
        loop {
            let _: () = redis::cmd("SCRIPT")
                .arg("FLUSH")
                .query_async(&mut redis)
                .await
                .unwrap();
            sleep(pause).await;
        }
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_forgets_scripts_all_the_time_is_told_them_again() {
    let server = server();
    let clients = [client(&server).await, client(&server).await];
    let register = Register::new();
    let flushes = forgetful(&server, ms(5)).await;
    let uses = clients.iter().flat_map(|client| [client; 4]).map(|client| {
        let (lock, register) = (client.mutex("n"), &register);
        async move {
            for _ in 0..40 {
                register.use_once(&lock, ms(0)).await;
            }
        }
    });
    soon(join_all(uses)).await;
    flushes.abort();
    register.is_sound();
    assert_eq!(register.uses(), 320);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_is_missing_is_sent_once_and_together_with_its_call() {
    let server = server();
    let locker = client(&server).await;
    let lock = locker.mutex("n");
    let_go(lock.lock().await.unwrap()).await;
    cli(&server, &["SCRIPT", "FLUSH"]);
    cli(&server, &["CONFIG", "RESETSTAT"]);
    for _ in 0..10 {
        let_go(lock.lock().await.unwrap()).await;
    }
    // Two scripts were missing: each was tried, sent, and called.
    assert_eq!(calls(&server, "script|load"), 2);
    assert_eq!(calls(&server, "evalsha"), 22);
    // What `EVAL` brings may be thrown away by a server, what `SCRIPT LOAD` brings may not.
    assert_eq!(calls(&server, "eval"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_hold_of_a_batch_is_lost_while_the_server_forgets_scripts() {
    let server = server();
    let locker = client(&server).await;
    let mut guards = Vec::new();
    for number in 0..500 {
        let lock = locker.mutex(format!("n{number}")).ttl(ms(3_000));
        guards.push(lock.lock().await.unwrap());
    }
    let flushes = forgetful(&server, ms(10)).await;
    sleep(ms(5_000)).await;
    flushes.abort();
    assert_eq!(guards.iter().filter(|guard| !guard.is_held()).count(), 0);
    for guard in guards {
        let_go(guard).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_to_load_scripts_that_is_missing_is_named() {
    let rules = "~lk:* &lk:* +@all -script";
    let server = started(RedisServer::builder().user("few", "few", rules));
    let locker = locker(&server.url_of("few", "few")).await;
    let error = soon(locker.mutex("n").lock()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    let why = std::error::Error::source(&error).unwrap().to_string();
    assert!(why.contains("script"), "{why}");
}
