//! A backend that has no fencing tokens, no line, and no way to reach a holder.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![cfg(feature = "redis")]

mod support;

use lockkit_servers::redis::RedisServer;
use serde_json::Value;
use support::Place;

fn place(server: &RedisServer) -> Place {
    Place::at(format!("{}?strategy=simple", server.url()))
}

#[test]
fn where_there_are_no_tokens_none_is_told() {
    let server = RedisServer::start().unwrap();
    let place = place(&server);
    let script = "echo ${LOCKKIT_FENCING_TOKEN-unset}, $LOCKKIT_BACKEND, $LOCKKIT_MODE";
    let inner = place.lockkit(["run", "x", "-c", script]);
    let output = { inner }
        .env("LOCKKIT_FENCING_TOKEN", "7")
        .output()
        .unwrap();
    let said = support::text(&output.stdout);
    assert_eq!(said, "unset, redis-simple, exclusive\n", "{output:?}");

    let output = place.output(["run", "-v", "x", "--", "true"]);
    let said = support::text(&output.stderr);
    assert!(said.contains("(exclusive)"), "{said}");
    let holder = place.hold("x");
    let listed = place.said(&["ls"]);
    assert!(listed.lines().nth(1).unwrap().contains("  -  "), "{listed}");
    assert_eq!(place.ls()[0]["holders"][0]["fence"], Value::Null);
    let broken = place.said(&["break", "x"]);
    assert!(broken.ends_with(" (exclusive)\n"), "{broken}");
    assert_eq!(holder.end().0.code(), Some(79));

    let acquired = place.said(&["acquire", "x", "--format", "json"]);
    let acquired: Value = serde_json::from_str(&acquired).unwrap();
    assert_eq!(acquired["fence"], Value::Null);
    place.said(&["release", acquired["id"].as_str().unwrap()]);
}

#[test]
fn what_it_cannot_do_it_refuses() {
    let server = RedisServer::start().unwrap();
    let place = place(&server);
    // Whether or not somebody holds it.
    let _holder = place.hold("held");
    for name in ["held", "free"] {
        let said = place.refused(&["request-release", name], 78);
        assert!(said.contains("redis-simple: "), "{said}");
        assert!(said.contains("evict the hold"), "{said}");
    }
    let said = place.refused(&["run", "free", "--fair", "--", "true"], 78);
    assert!(said.contains("drop `fair`"), "{said}");
    let said = place.refused(&["run", "free", "--shared", "--", "true"], 78);
    assert!(said.contains("no rw"), "{said}");
}
