//! Every flow, before a server that echoes.

use std::io::ErrorKind;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{Instant, sleep, timeout};

use super::*;

/// Long enough for bytes that are on their way to have arrived.
const A_WHILE: Duration = Duration::from_millis(250);
/// Longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// A proxy before a server that sends back what it gets.
async fn echo() -> Proxy {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = Proxy::to(server.local_addr().unwrap()).await.unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = server.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = client.split();
                let _ = tokio::io::copy(&mut from, &mut to).await;
            });
        }
    });
    proxy
}

async fn connect(proxy: &Proxy) -> TcpStream {
    TcpStream::connect(proxy.address()).await.unwrap()
}

async fn read(client: &mut TcpStream, count: usize) -> String {
    let mut bytes = vec![0; count];
    let read = timeout(PATIENCE, client.read_exact(&mut bytes));
    read.await.unwrap().unwrap();
    String::from_utf8(bytes).unwrap()
}

async fn until(mut it_is_so: impl FnMut() -> bool) {
    let wait = timeout(PATIENCE, async {
        while !it_is_so() {
            sleep(Duration::from_millis(5)).await;
        }
    });
    wait.await.unwrap();
}

async fn nothing_comes(client: &mut TcpStream) {
    let read = timeout(A_WHILE, client.read_u8()).await;
    assert!(read.is_err(), "{read:?}");
}

async fn is_reset(client: &mut TcpStream) {
    let read = timeout(PATIENCE, client.read_u8()).await.unwrap();
    assert_eq!(read.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn bytes_pass_and_are_counted_and_an_end_is_passed_on() {
    let proxy = echo().await;
    let mut client = connect(&proxy).await;
    client.write_all(b"hello").await.unwrap();
    assert_eq!(read(&mut client, 5).await, "hello");
    until(|| proxy.traffic().replies == 5).await;
    let traffic = proxy.traffic();
    assert_eq!((traffic.connections, traffic.open), (1, 1));
    assert_eq!(traffic.requests, 5);

    client.shutdown().await.unwrap();
    assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
    until(|| proxy.traffic().open == 0).await;
}

#[tokio::test]
async fn a_cut_resets_and_refuses_until_all_passes() {
    let proxy = echo().await;
    let mut client = connect(&proxy).await;
    client.write_all(b"a").await.unwrap();
    assert_eq!(read(&mut client, 1).await, "a");
    for _ in 0..3 {
        proxy.cut().await.unwrap();
        is_reset(&mut client).await;
        let refused = TcpStream::connect(proxy.address()).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        assert_eq!(proxy.traffic().open, 0);
        proxy.cut().await.unwrap();

        proxy.pass().await.unwrap();
        client = connect(&proxy).await;
        client.write_all(b"b").await.unwrap();
        assert_eq!(read(&mut client, 1).await, "b");
    }
    assert_eq!(proxy.traffic().connections, 4);
}

#[tokio::test]
async fn a_port_that_is_taken_for_a_moment_is_waited_for() {
    let proxy = echo().await;
    proxy.cut().await.unwrap();
    let thief = TcpSocket::new_v4().unwrap();
    thief.set_reuseaddr(true).unwrap();
    thief.bind(proxy.address()).unwrap();
    let thief = thief.listen(1).unwrap();
    let passes = proxy.pass();
    let gives_up = async {
        sleep(Duration::from_millis(100)).await;
        drop(thief);
    };
    tokio::join!(passes, gives_up).0.unwrap();
    let mut client = connect(&proxy).await;
    client.write_all(b"a").await.unwrap();
    assert_eq!(read(&mut client, 1).await, "a");
}

#[tokio::test]
async fn a_cut_of_what_is_there_welcomes_what_comes() {
    let proxy = echo().await;
    let mut old = connect(&proxy).await;
    old.write_all(b"a").await.unwrap();
    assert_eq!(read(&mut old, 1).await, "a");
    proxy.cut_existing().await;
    is_reset(&mut old).await;
    let mut new = connect(&proxy).await;
    new.write_all(b"b").await.unwrap();
    assert_eq!(read(&mut new, 1).await, "b");
}

#[tokio::test]
async fn what_stalls_arrives_later_and_connections_stay() {
    let proxy = echo().await;
    let mut old = connect(&proxy).await;
    for stall in [Proxy::set, Proxy::set_requests, Proxy::set_replies] {
        stall(&proxy, Flow::Stall);
        let mut new = connect(&proxy).await;
        old.write_all(b"old").await.unwrap();
        new.write_all(b"new").await.unwrap();
        nothing_comes(&mut old).await;
        nothing_comes(&mut new).await;
        proxy.pass().await.unwrap();
        assert_eq!(read(&mut old, 3).await, "old");
        assert_eq!(read(&mut new, 3).await, "new");
    }
}

#[tokio::test]
async fn a_stalled_connection_can_be_cut() {
    let proxy = echo().await;
    let mut client = connect(&proxy).await;
    proxy.set(Flow::Stall);
    client.write_all(b"a").await.unwrap();
    nothing_comes(&mut client).await;
    timeout(PATIENCE, proxy.cut()).await.unwrap().unwrap();
    is_reset(&mut client).await;
}

#[tokio::test]
async fn replies_are_swallowed_and_their_requests_arrive() {
    let proxy = echo().await;
    let mut client = connect(&proxy).await;
    proxy.set_replies(Flow::Swallow);
    client.write_all(b"lost").await.unwrap();
    until(|| proxy.traffic().requests == 4).await;
    nothing_comes(&mut client).await;
    assert_eq!(proxy.traffic().replies, 0);
    proxy.set_replies(Flow::Pass);
    client.write_all(b"kept").await.unwrap();
    assert_eq!(read(&mut client, 4).await, "kept");
}

#[tokio::test]
async fn swallowed_requests_do_not_arrive() {
    let proxy = echo().await;
    let mut client = connect(&proxy).await;
    proxy.set_requests(Flow::Swallow);
    client.write_all(b"lost").await.unwrap();
    nothing_comes(&mut client).await;
    assert_eq!(proxy.traffic().requests, 0);
}

#[tokio::test]
async fn delays_add_up_and_keep_the_order() {
    let proxy = echo().await;
    let mut client = connect(&proxy).await;
    proxy.set_requests(Flow::Delay(A_WHILE));
    proxy.set_replies(Flow::Delay(A_WHILE));
    client.write_all(b"first").await.unwrap();
    sleep(A_WHILE / 4).await;
    proxy.pass().await.unwrap();
    client.write_all(b"second").await.unwrap();
    assert_eq!(read(&mut client, 11).await, "firstsecond");

    proxy.set(Flow::Delay(A_WHILE));
    let started = Instant::now();
    client.write_all(b"third").await.unwrap();
    assert_eq!(read(&mut client, 5).await, "third");
    assert!(started.elapsed() >= 2 * A_WHILE);
}

#[tokio::test]
async fn pushes_are_swallowed_and_replies_arrive() {
    const PUSH: &[u8] = b">2\r\n+message\r\n$3\r\nhey\r\n";
    let proxy = echo().await;
    let mut client = connect(&proxy).await;
    proxy.set_replies(Flow::SwallowPushes);
    let both = [PUSH, b"+OK\r\n", PUSH].concat();
    client.write_all(&both).await.unwrap();
    assert_eq!(read(&mut client, 5).await, "+OK\r\n");
    nothing_comes(&mut client).await;
    proxy.set_replies(Flow::Pass);
    client.write_all(PUSH).await.unwrap();
    assert_eq!(read(&mut client, PUSH.len()).await.as_bytes(), PUSH);
}

#[tokio::test]
async fn a_server_that_is_not_there_resets_its_clients() {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = Proxy::to(server.local_addr().unwrap()).await.unwrap();
    drop(server);
    is_reset(&mut connect(&proxy).await).await;
}

#[tokio::test]
async fn a_dropped_proxy_resets_and_refuses() {
    let proxy = echo().await;
    let address = proxy.address();
    let mut client = connect(&proxy).await;
    client.write_all(b"a").await.unwrap();
    assert_eq!(read(&mut client, 1).await, "a");
    drop(proxy);
    is_reset(&mut client).await;
    assert!(TcpStream::connect(address).await.is_err());
}
