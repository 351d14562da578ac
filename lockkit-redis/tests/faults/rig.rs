//! A server of one's own, clients of it, and what must never be seen of them.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockkit_core::{Clock, Fence, Guard, Locker, Primitive, Resource, Unlocked};
use lockkit_redis::Redis;
use lockkit_servers::redis::{RedisBuilder, RedisServer};
use lockkit_testkit::{History, Proxy};
use redis::aio::MultiplexedConnection;
use tokio::task::block_in_place;
use tokio::time::{Instant, sleep, timeout};

/// Longer than anything takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A server that forgets everything when it ends.
pub(crate) fn server() -> RedisServer {
    started(RedisServer::builder())
}

pub(crate) fn started(builder: RedisBuilder) -> RedisServer {
    block_in_place(|| builder.start()).unwrap()
}

/// An operator with `redis-cli`.
pub(crate) fn cli(server: &RedisServer, command: &[&str]) -> String {
    block_in_place(|| server.cli(command)).unwrap()
}

/// The same for what is not text.
pub(crate) async fn raw(server: &RedisServer) -> MultiplexedConnection {
    let client = redis::Client::open(server.url()).unwrap();
    client.get_multiplexed_async_connection().await.unwrap()
}

/// A client of the server.
pub(crate) async fn client(server: &RedisServer) -> Locker {
    locker(&server.url()).await
}

/// A client that notices soon when nobody answers.
pub(crate) async fn locker(url: &str) -> Locker {
    let and = if url.contains('?') { '&' } else { '?' };
    let url = format!("{url}{and}timeout=400ms&heartbeat=200ms");
    Locker::new(Redis::connect(&url).await.unwrap()).unwrap()
}

/// A proxy before the server, and the URL of it.
pub(crate) async fn proxied(server: &RedisServer) -> (Proxy, String) {
    let proxy = Proxy::to(([127, 0, 0, 1], server.port())).await.unwrap();
    let url = format!("redis://127.0.0.1:{}", proxy.port());
    (proxy, url)
}

/// Resets all connections through a proxy, and refuses new ones.
pub(crate) async fn cut(proxy: &Proxy) {
    // A child process that is being started has a copy of the listener for a moment.
    until("the port is free", async || proxy.cut().await.is_ok()).await;
}

/// The main key of a mutex, found by looking.
pub(crate) fn key_of(server: &RedisServer, name: &str) -> String {
    let keys = cli(server, &["KEYS", &format!("lk:{{*}}:mutex/{name}.")]);
    assert!(!keys.is_empty(), "nobody holds {name}");
    keys
}

/// How often the server has run a command.
pub(crate) fn calls(server: &RedisServer, command: &str) -> u64 {
    let stats = cli(server, &["INFO", "commandstats"]);
    let beginning = format!("cmdstat_{command}:calls=");
    let line = stats.lines().find_map(|line| line.strip_prefix(&beginning));
    let count = line.and_then(|line| line.split(',').next());
    count.map_or(0, |count| count.parse().unwrap())
}

pub(crate) fn mutex(name: &str) -> Resource {
    Resource::new(Primitive::Mutex, name.parse().unwrap())
}

/// How many stand in line for a mutex.
pub(crate) async fn waiting(locker: &Locker, name: &str) -> usize {
    locker.inspect(&mutex(name)).await.unwrap().waiters.len()
}

/// Waits until so many stand in line.
pub(crate) async fn in_line(locker: &Locker, name: &str, count: usize) {
    until("the line", async || waiting(locker, name).await == count).await;
}

/// Waits until it is so.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let started = Instant::now();
    while !is_so().await {
        assert!(started.elapsed() < PATIENCE, "not in time: {what}");
        sleep(ms(10)).await;
    }
}

/// Releases a hold that is believed in.
pub(crate) async fn let_go(guard: Guard) {
    assert_eq!(guard.unlock().await.unwrap(), Unlocked::Clean);
}

/// Releases a hold that was lost.
pub(crate) async fn was_lost(guard: Guard) {
    let unlocked = guard.unlock().await.unwrap();
    assert!(matches!(unlocked, Unlocked::Lost(_)), "{unlocked:?}");
}

/// The outcome of what has to come to an end.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    timeout(PATIENCE, what).await.expect("not in time")
}

/// What the locks protect: it rejects who comes with a smaller fence than somebody before, and
/// remembers who believed in a hold when.
#[derive(Clone, Debug)]
pub(crate) struct Register {
    highest: Arc<Mutex<Fence>>,
    history: History,
}

impl Register {
    pub(crate) fn new() -> Self {
        Self {
            highest: Arc::new(Mutex::new(Fence::new(0))),
            history: History::new(Clock::Boot),
        }
    }

    /// Writes under a guard: `false` if somebody with a greater fence has written before.
    pub(crate) fn write(&self, guard: &Guard) -> bool {
        let mut highest = self.highest.lock().unwrap();
        let accepted = guard.fence() >= *highest;
        *highest = guard.fence().max(*highest);
        accepted
    }

    /// Uses a mutex once: waits, writes, lets go.
    pub(crate) async fn use_once(&self, lock: &lockkit_core::Mutex, work: Duration) {
        let invoked = self.history.now();
        let guard = lock.lock().await.unwrap();
        let open = self.history.held(invoked);
        assert!(
            self.write(&guard),
            "a fence fell: {} under {}",
            guard.fence(),
            self.highest.lock().unwrap()
        );
        sleep(work).await;
        self.history.ends(open, &guard);
        // It may have been lost meanwhile: the history has that.
        let _ = guard.unlock().await;
    }

    /// No two believed in it at once, no fence was given twice, and fences rose.
    pub(crate) fn is_sound(&self) {
        let violations = self.history.violations();
        let told: Vec<String> = violations.iter().map(ToString::to_string).collect();
        assert!(told.is_empty(), "{}", told.join("\n"));
    }

    pub(crate) fn uses(&self) -> usize {
        self.history.spans().len()
    }
}
