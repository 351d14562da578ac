//! Acquires that nobody wants any more.

use futures_util::future::join_all;
use lockkit_testkit::Flow;
use rand::RngExt;
use tokio::time::{sleep, timeout};

use crate::rig::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_acquires_dropped_at_any_moment_leave_no_hold_and_no_place() {
    let server = server();
    let clients = [client(&server).await, client(&server).await];
    let register = Register::new();
    let drops = clients
        .iter()
        .flat_map(|client| [client; 10])
        .map(|client| {
            let (lock, register) = (client.mutex("n").ttl(ms(60_000)), &register);
            async move {
                for round in 0..50 {
                    let micros = rand::rng().random_range(0..2_000);
                    let using = register.use_once(&lock, ms(0));
                    let _ = timeout(std::time::Duration::from_micros(micros), using).await;
                    if round % 10 == 0 {
                        sleep(ms(1)).await;
                    }
                }
            }
        });
    soon(join_all(drops)).await;
    // Were anything left, this would take a minute.
    register.use_once(&clients[0].mutex("n"), ms(0)).await;
    until("nobody stands in line", async || {
        waiting(&clients[0], "n").await == 0
    })
    .await;
    let keys = async || cli(&server, &["KEYS", "lk:*mutex*"]);
    until("nothing is left", async || keys().await.is_empty()).await;
    register.is_sound();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acquire_dropped_while_nothing_arrives_leaves_nothing_once_it_does() {
    let server = server();
    let (proxy, url) = proxied(&server).await;
    let (away, here) = (locker(&url).await, client(&server).await);
    for flow in [Flow::Stall, Flow::Swallow] {
        proxy.set(flow);
        let mut tasks = Vec::new();
        for number in 0..20 {
            let lock = away.mutex(format!("n{number}")).ttl(ms(60_000));
            tasks.push(tokio::spawn(async move { lock.lock().await.map(drop) }));
        }
        sleep(ms(200)).await;
        tasks.iter().for_each(tokio::task::JoinHandle::abort);
        sleep(ms(700)).await;
        proxy.pass().await.unwrap();
        for number in 0..20 {
            let lock = here.mutex(format!("n{number}")).ttl(ms(60_000));
            let_go(soon(lock.lock()).await.unwrap()).await;
        }
        until("nothing is left", async || {
            cli(&server, &["KEYS", "lk:*mutex*"]).is_empty()
        })
        .await;
    }
}
