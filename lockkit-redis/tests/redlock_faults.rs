//! RedLock with servers that stop, die and forget.
#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "redlock_support/mod.rs"]
mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use lockkit_core::{Backend, ErrorKind, Released, Renewal};
use lockkit_redis::Redlock;
use lockkit_servers::redis::{Independent, RedisServer};
use support::{Nodes, attempt, claim, eventually, hold, mutex, release, renew};

const LONG: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_minority_is_success_or_a_clean_failure() {
    for (count, killed) in [(3, 1), (5, 2)] {
        let mut nodes = Nodes::start(count);
        let client = Arc::new(nodes.client("timeout=500ms").await);
        let mut last = 0;
        // Rounds go on all the time while servers die, so some die in each phase.
        let working = {
            let client = Arc::clone(&client);
            tokio::spawn(async move {
                for round in 0..60 {
                    let claim = claim("n", Duration::from_secs(5));
                    let grant = hold(&client, &claim).await;
                    assert!(grant.fence.get() > last, "round {round}");
                    last = grant.fence.get();
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    assert_eq!(release(&client, &claim).await.unwrap(), Released::Done);
                }
            })
        };
        for node in 0..killed {
            tokio::time::sleep(Duration::from_millis(40)).await;
            nodes.0[node].kill().unwrap();
        }
        working.await.unwrap();
        eventually("nothing is left", async || {
            !nodes.holding()[killed..].contains(&true)
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_majority_down_is_unavailable_within_one_time_out() {
    let mut nodes = Nodes::start(3);
    let client = nodes.client("timeout=500ms").await;
    let held = claim("held", LONG);
    hold(&client, &held).await;
    nodes.0[0].pause().unwrap();
    nodes.0[1].pause().unwrap();
    let started = Instant::now();
    let tried = claim("n", LONG);
    let error = attempt(&client, &tried).await.unwrap_err();
    let took = started.elapsed();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(took < Duration::from_millis(1500), "{took:?}");
    assert!(matches!(renew(&client, &held).await, Renewal::Unknown(_)));
    assert!(release(&client, &held).await.is_err());
    nodes.0[0].resume().unwrap();
    nodes.0[1].kill().unwrap();
    // What failed is released until that is answered, as core does.
    eventually("released", async || release(&client, &tried).await.is_ok()).await;
    // Two of three are a majority again.
    hold(&client, &claim("n", LONG)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_node_costs_nothing() {
    let nodes = Nodes::start(5);
    let client = nodes.client("timeout=2s").await;
    nodes.0[2].pause().unwrap();
    let started = Instant::now();
    for _ in 0..20 {
        let claim = claim("n", LONG);
        assert!(attempt(&client, &claim).await.unwrap().is_some());
        assert!(matches!(
            renew(&client, &claim).await,
            Renewal::Renewed { .. }
        ));
        assert_eq!(release(&client, &claim).await.unwrap(), Released::Done);
    }
    // Far less than one time-out of the node that does not answer, for all of them.
    let took = started.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
    nodes.0[2].resume().unwrap();
    eventually("nothing is left", async || !nodes.holding().contains(&true)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_restarts_empty_lets_no_second_holder_in() {
    let mut nodes = Nodes::start(3);
    let options = "timeout=300ms&max_lease=3s";
    let client = nodes.client(options).await;
    // Held by two of three: the third was not there.
    nodes.0[2].pause().unwrap();
    let held = claim("n", Duration::from_secs(3));
    let grant = attempt(&client, &held).await.unwrap().unwrap();
    let granted_at = Instant::now();
    nodes.0[0].restart().unwrap();
    nodes.0[2].resume().unwrap();
    // One that connects afterwards has not seen the restart, and must not be taken in either.
    let other = nodes.client(options).await;
    let next = claim("n", Duration::from_secs(3));
    while granted_at.elapsed() < Duration::from_millis(2500) {
        let second = attempt(&other, &next).await;
        assert!(
            !matches!(second, Ok(Some(_))),
            "a second holder: {second:?}"
        );
        release(&other, &next).await.ok();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let later = hold(&other, &next).await;
    assert!(later.fence > grant.fence);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_forgot_votes_again_with_the_counters_of_the_majority() {
    let mut nodes = Nodes::start(3);
    let client = nodes.client("timeout=300ms&max_lease=1s").await;
    let held = claim("held", Duration::from_secs(1));
    let grant = hold(&client, &held).await;
    let count = async |nodes: &Nodes| {
        let field = nodes.0[0].cli(&["HGETALL", "lk:redlock/node"]).unwrap();
        field.contains(&grant.fence.get().to_string())
    };
    assert!(count(&nodes).await || nodes.0.len() == 3);
    nodes.0[0].restart().unwrap();
    assert!(!count(&nodes).await);
    eventually("it has the counter and the hold again", async || {
        assert!(matches!(
            renew(&client, &held).await,
            Renewal::Renewed { .. }
        ));
        nodes.holding()[0] && count(&nodes).await
    })
    .await;
    // Now another one may fail.
    nodes.0[1].kill().unwrap();
    assert!(matches!(
        renew(&client, &held).await,
        Renewal::Renewed { .. }
    ));
    assert_eq!(release(&client, &held).await.unwrap(), Released::Done);
    let next = claim("held", Duration::from_secs(1));
    assert!(hold(&client, &next).await.fence > grant.fence);
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_write_to_disk_first_forget_nothing() {
    let mut servers = Independent::start(3).unwrap();
    let client = Redlock::connect(&servers.url()).await.unwrap();
    let held = claim("n", LONG);
    let grant = hold(&client, &held).await;
    for server in servers.servers_mut() {
        server.restart().unwrap();
    }
    eventually("it is still held", async || {
        matches!(renew(&client, &held).await, Renewal::Renewed { .. })
    })
    .await;
    assert!(matches!(
        attempt(&client, &claim("n", LONG)).await,
        Ok(None)
    ));
    release(&client, &held).await.unwrap();
    let next = claim("n", LONG);
    assert!(hold(&client, &next).await.fence > grant.fence);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_split_vote_has_a_winner_soon() {
    let nodes = Nodes::start(3);
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(Arc::new(nodes.client("").await));
    }
    let mut rounds = Vec::new();
    for _ in 0..100 {
        let barrier = Arc::new(tokio::sync::Barrier::new(3));
        let contenders = clients.iter().map(|client| {
            let (client, barrier) = (Arc::clone(client), Arc::clone(&barrier));
            tokio::spawn(async move {
                let claim = claim("n", LONG);
                let mut ticket = client.enter(claim.clone()).unwrap();
                barrier.wait().await;
                let mut rounds = 0;
                loop {
                    rounds += 1;
                    match ticket.attempt().await.unwrap() {
                        lockkit_core::Attempt::Held(_) => break,
                        lockkit_core::Attempt::Busy { recheck_after } => {
                            tokio::time::sleep(recheck_after.unwrap()).await;
                        }
                    }
                }
                release(&client, &claim).await.unwrap();
                rounds
            })
        });
        let contenders: Vec<_> = contenders.collect();
        let mut first = usize::MAX;
        for contender in contenders {
            first = first.min(contender.await.unwrap());
        }
        rounds.push(first);
    }
    rounds.sort_unstable();
    assert!(rounds[98] <= 5, "rounds of the first winner: {rounds:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_lives_on_a_majority_and_is_given_back_to_the_rest() {
    let nodes = Nodes::start(3);
    let client = nodes.client("").await;
    let held = claim("n", LONG);
    let grant = hold(&client, &held).await;
    eventually("all have it", async || nodes.holding() == [true; 3]).await;
    let key = nodes.0[1].cli(&["KEYS", "*:redlock/mutex/*"]).unwrap();
    nodes.0[1].cli(&["DEL", key.trim()]).unwrap();
    eventually("it is given back", async || {
        let renewal = renew(&client, &held).await;
        assert!(matches!(renewal, Renewal::Renewed { .. }), "{renewal:?}");
        nodes.holding() == [true; 3]
    })
    .await;
    let holders = client.inspect(&mutex("n")).await.unwrap().holders;
    assert_eq!(holders[0].fence, grant.fence);
    // Gone from a majority is gone, and is not brought back.
    for node in &nodes.0[..2] {
        node.cli(&["DEL", key.trim()]).unwrap();
    }
    assert!(matches!(renew(&client, &held).await, Renewal::Gone));
    assert!(matches!(renew(&client, &held).await, Renewal::Gone));
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_cannot_outvote_each_other_are_refused() {
    let nodes = Nodes::start(3);
    let [a, b, c] = [0, 1, 2].map(|at| nodes.0[at].address());
    let alias = format!("localhost:{}", nodes.0[0].port());
    let same: Vec<String> = vec![
        format!("redlock://{a}"),
        format!("redlock://{a},{b}"),
        format!("redlock://{a},{b},{c},127.0.0.1:1"),
        format!("redlock://{a},{b},{a}"),
        format!("redlock://{a},{b},{alias}"),
        format!("redlock://{a},{b},{c}?replicas=1"),
        format!("redis://{a}"),
    ];
    for url in same {
        let error = Redlock::connect(&url).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidConfig, "{url}: {error}");
    }
    let nobody = "redlock://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3";
    let error = Redlock::connect(nobody).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_comes_later_joins() {
    let mut nodes = Nodes::start(3);
    drop(nodes.client("prefix=known&max_lease=1s").await);
    nodes.0[2].kill().unwrap();
    let client = nodes.client("prefix=known&max_lease=1s").await;
    let held = claim("n", Duration::from_secs(1));
    hold(&client, &held).await;
    nodes.0[2].restart().unwrap();
    eventually("it holds as well", async || {
        assert!(matches!(
            renew(&client, &held).await,
            Renewal::Renewed { .. }
        ));
        nodes.holding()[2]
    })
    .await;
    drop::<Vec<RedisServer>>(nodes.0);
}

/// Core renews those who wait as well, while they go on trying.
#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_that_meets_a_round_under_way_takes_nothing_from_it() {
    let nodes = Nodes::start(3);
    let client = Arc::new(nodes.client("").await);
    for round in 0..200 {
        let claim = claim("n", LONG);
        let renewing = {
            let (client, claim) = (Arc::clone(&client), claim.clone());
            tokio::spawn(async move {
                while !matches!(renew(&client, &claim).await, Renewal::Renewed { .. }) {}
            })
        };
        let grant = attempt(&client, &claim).await.unwrap();
        assert!(grant.is_some(), "nobody else is there");
        // Whatever these renewals have set going has arrived by then.
        tokio::time::sleep(Duration::from_millis(20)).await;
        renewing.abort();
        let renewal = renew(&client, &claim).await;
        assert!(
            matches!(renewal, Renewal::Renewed { .. }),
            "round {round}: {renewal:?}"
        );
        assert_eq!(release(&client, &claim).await.unwrap(), Released::Done);
    }
}
