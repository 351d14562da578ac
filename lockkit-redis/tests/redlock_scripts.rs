//! The scripts of RedLock on one server: late, repeated and foreign messages.
#![allow(clippy::unwrap_used, reason = "a test")]

use lockkit_servers::redis::RedisServer;
use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue, Value};

const KEYS: [&str; 2] = ["lk:{1}:redlock/mutex/n.", "lk:redlock/node"];
const A: &str = "aaaaaaaaaaaaaaaa";
const B: &str = "bbbbbbbbbbbbbbbb";
const RUN: &str = "run";

struct Node {
    _server: RedisServer,
    connection: MultiplexedConnection,
}

impl Node {
    async fn new() -> Self {
        let server = RedisServer::start().unwrap();
        let client = redis::Client::open(server.url()).unwrap();
        let connection = client.get_multiplexed_async_connection().await.unwrap();
        let mut node = Self {
            _server: server,
            connection,
        };
        let adopt = include_str!("../src/lua/redlock_adopt.lua");
        let _: i64 = node.run(adopt, &[KEYS[1]], &[RUN, "7", "5"]).await;
        node
    }

    async fn run<T: FromRedisValue>(&mut self, text: &str, keys: &[&str], args: &[&str]) -> T {
        let mut call = redis::cmd("EVAL");
        let call = call.arg(text).arg(keys.len()).arg(keys).arg(args);
        call.query_async(&mut self.connection).await.unwrap()
    }

    async fn propose(&mut self, attempt: &str, round: &str) -> Vec<i64> {
        let text = include_str!("../src/lua/redlock_propose.lua");
        let args = [RUN, attempt, "60000", round, "7", "0:-:me:1@h x"];
        self.run(text, &KEYS, &args).await
    }

    async fn confirm(&mut self, attempt: &str, round: &str, token: &str) -> i64 {
        let text = include_str!("../src/lua/redlock_confirm.lua");
        let args = [RUN, attempt, "60000", round, "7", token];
        self.run(text, &KEYS, &args).await
    }

    async fn repair(&mut self, attempt: &str, token: &str) -> i64 {
        let text = include_str!("../src/lua/redlock_repair.lua");
        let stored = format!("1{attempt}{token}:1:0:60000:0:-:me:1@h x");
        let args = [RUN, attempt, "60000", "7", token, &stored];
        self.run(text, &KEYS, &args).await
    }

    async fn renew(&mut self, attempt: &str) -> Vec<String> {
        let text = include_str!("../src/lua/redlock_renew.lua");
        self.run(text, &[KEYS[1], KEYS[0]], &[RUN, attempt]).await
    }

    async fn release(&mut self, attempt: &str, round: &str) -> i64 {
        let text = include_str!("../src/lua/redlock_release.lua");
        self.run(text, &KEYS[..1], &[attempt, round, "lk:redlock/in:", ""])
            .await
    }

    /// As if the lease had run out.
    async fn expire(&mut self) {
        let _: i64 = redis::cmd("DEL")
            .arg(KEYS[0])
            .query_async(&mut self.connection)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_delayed_phase_2_message_after_another_owner_is_refused() {
    let mut node = Node::new().await;
    assert_eq!(node.propose(A, "1").await, [1, 5, 0]);
    node.expire().await;
    assert_eq!(node.confirm(A, "1", "6").await, -1, "it expired");
    assert_eq!(node.propose(B, "1").await, [1, 5, 0]);
    assert_eq!(node.confirm(A, "1", "6").await, -1, "somebody else's");
    assert_eq!(node.confirm(B, "1", "6").await, 1);
    assert_eq!(node.confirm(A, "1", "7").await, -1, "whatever its token");
    node.expire().await;
    // It holds again, in a new round, and the old message comes only now.
    assert_eq!(node.propose(A, "2").await, [1, 6, 0]);
    assert_eq!(node.confirm(A, "1", "8").await, -1, "of an older round");
    assert_eq!(node.confirm(A, "2", "6").await, -1, "not above the counter");
    assert_eq!(node.confirm(A, "2", "7").await, 1);
    assert_eq!(node.confirm(A, "2", "7").await, 1, "the same again");
    assert_eq!(node.confirm(A, "2", "6").await, -1, "tokens do not fall");
}

#[tokio::test]
async fn who_proposes_again_keeps_what_was_confirmed() {
    let mut node = Node::new().await;
    node.propose(A, "1").await;
    node.confirm(A, "1", "6").await;
    assert_eq!(node.propose(A, "2").await, [1, 5, 6]);
    assert_eq!(node.propose(A, "1").await[0], 2, "an old round");
    assert_eq!(node.propose(B, "9").await[..2], [2, 6]);
    assert_eq!(node.confirm(A, "2", "6").await, 1);
    assert_eq!(node.renew(A).await, ["6:60000:-"]);
}

#[tokio::test]
async fn only_what_was_confirmed_is_renewed_and_nothing_is_brought_back() {
    let mut node = Node::new().await;
    node.propose(A, "1").await;
    assert_eq!(node.renew(A).await, [""], "only taken");
    node.confirm(A, "1", "6").await;
    assert_eq!(node.renew(B).await, [""], "somebody else's");
    node.expire().await;
    assert_eq!(node.renew(A).await, [""]);
}

#[tokio::test]
async fn a_hold_is_given_back_unless_somebody_was_confirmed_since() {
    let mut node = Node::new().await;
    assert_eq!(node.repair(A, "6").await, 1, "it has it now");
    assert_eq!(node.repair(A, "6").await, 1, "still");
    assert_eq!(node.renew(A).await, ["6:60000:-"]);
    assert_eq!(node.repair(B, "7").await, -1, "somebody else's");
    node.expire().await;
    node.propose(B, "1").await;
    node.confirm(B, "1", "7").await;
    node.expire().await;
    assert_eq!(node.repair(A, "6").await, -1, "somebody was there");
    assert_eq!(node.repair(B, "7").await, 1, "nobody was there since");
}

#[tokio::test]
async fn a_release_is_the_owners_and_late_cleaning_up_spares_later_rounds() {
    let mut node = Node::new().await;
    node.propose(A, "2").await;
    assert_eq!(node.release(B, "").await, 0);
    assert_eq!(node.release(A, "1").await, 0, "of an earlier round");
    assert_eq!(node.release(A, "2").await, 2, "it was only taken");
    node.propose(A, "3").await;
    node.confirm(A, "3", "6").await;
    assert_eq!(node.release(A, "").await, 1);
    assert_eq!(node.release(A, "").await, 0, "again");
}

#[tokio::test]
async fn a_node_that_forgot_has_no_vote() {
    let mut node = Node::new().await;
    let _: Value = redis::cmd("DEL")
        .arg(KEYS[1])
        .query_async(&mut node.connection)
        .await
        .unwrap();
    assert_eq!(node.propose(A, "1").await, [0]);
    assert_eq!(node.confirm(A, "1", "6").await, 0);
    assert_eq!(node.repair(A, "6").await, 0);
    assert!(node.renew(A).await.is_empty());
    let join = include_str!("../src/lua/redlock_join.lua");
    let standing: Vec<i64> = node.run(join, &[KEYS[1]], &[RUN, "1000", ""]).await;
    assert_eq!(standing[..3], [0, 0, 1000], "nothing is known, as of now");
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    let standing: Vec<i64> = node.run(join, &[KEYS[1]], &[RUN, "500", ""]).await;
    assert!(standing[1] >= 20 && standing[2] == 1000, "{standing:?}");
    let standing: Vec<i64> = node.run(join, &[KEYS[1]], &["another", "500", ""]).await;
    assert_eq!(standing[1], 0, "forgotten once more");
}

#[tokio::test]
async fn tokens_of_microseconds_are_written_in_full() {
    let mut node = Node::new().await;
    let adopt = include_str!("../src/lua/redlock_adopt.lua");
    let floor = [RUN, "floor", "1795260349925689"];
    let _: i64 = node.run(adopt, &[KEYS[1]], &floor).await;
    assert_eq!(node.propose(A, "1").await, [1, 1_795_260_349_925_689, 0]);
    assert_eq!(node.confirm(A, "1", "1795260349925690").await, 1);
    assert_eq!(node.renew(A).await, ["1795260349925690:60000:-"]);
    node.expire().await;
    assert_eq!(node.propose(B, "1").await, [1, 1_795_260_349_925_690, 0]);
}
