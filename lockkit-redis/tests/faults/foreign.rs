//! Keys that others have changed, or that another version has written.

use lockkit_core::{ErrorKind, LossReason, Released};
use tokio::time::sleep;

use crate::rig::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_that_an_operator_deletes_is_lost_within_a_beat() {
    let server = server();
    let locker = client(&server).await;
    let register = Register::new();
    for command in ["DEL", "UNLINK", "FLUSHALL"] {
        let guard = locker.mutex("n").ttl(ms(1_500)).lock().await.unwrap();
        assert!(register.write(&guard), "fences fell before {command}");
        let key = key_of(&server, "n");
        match command {
            "FLUSHALL" => cli(&server, &[command]),
            command => cli(&server, &[command, &key]),
        };
        assert_eq!(soon(guard.lost()).await, LossReason::Gone, "{command}");
        register.use_once(&locker.mutex("n"), ms(0)).await;
        assert!(!register.write(&guard), "a stale write was accepted");
        was_lost(guard).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_somebody_else_put_in_place_of_a_hold_is_left_alone() {
    let server = server();
    let locker = client(&server).await;
    let guard = locker.mutex("n").ttl(ms(1_500)).lock().await.unwrap();
    let key = key_of(&server, "n");
    cli(&server, &["SET", &key, "somebody else's"]);
    assert_eq!(soon(guard.lost()).await, LossReason::Gone);
    was_lost(guard).await;
    let error = locker.mutex("n").try_lock().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    let again = locker.mutex("n").lock().await.unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Corrupt, "{again}");
    sleep(ms(200)).await;
    assert_eq!(cli(&server, &["GET", &key]), "somebody else's");
    assert_eq!(cli(&server, &["TTL", &key]), "-1");
}

#[tokio::test(flavor = "multi_thread")]
async fn data_of_another_type_is_an_error_that_names_the_cure_and_stays_as_it_is() {
    let server = server();
    let locker = client(&server).await;
    locker
        .mutex("n")
        .lock()
        .await
        .unwrap()
        .detach(ms(60_000))
        .await
        .unwrap();
    let key = key_of(&server, "n");
    let bucket = &key[..=key.find("}:").unwrap() + 1];
    cli(&server, &["DEL", &key]);
    let places = [key.clone(), format!("{key}q"), format!("{bucket}fence")];
    for wrong in &places {
        cli(&server, &["RENAME", &format!("{bucket}fence"), "aside"]);
        cli(&server, &["RPUSH", wrong, "precious"]);
        let error = locker.mutex("n").fair().try_lock().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{wrong}: {error}");
        assert!(error.to_string().contains("prefix"), "{error}");
        assert_eq!(cli(&server, &["LRANGE", wrong, "0", "-1"]), "precious");
        cli(&server, &["DEL", wrong]);
        cli(&server, &["RENAME", "aside", &format!("{bucket}fence")]);
    }
    for (letter, kind) in [('h', "h"), ('x', "x"), ('q', "q"), ('w', "w")] {
        let semaphore = locker.semaphore(format!("s{kind}"), 2);
        let held = semaphore.acquire_many(2).await.unwrap();
        let found = cli(&server, &["KEYS", &format!("lk:*semaphore/s{kind}.h")]);
        let wrong = format!("{}{letter}", &found[..found.len() - 1]);
        let_go(held).await;
        cli(&server, &["SET", &wrong, "precious"]);
        let waiter = semaphore.clone().wait(ms(2_000)).acquire().await;
        let waiter = match (letter, waiter) {
            // Nobody has to stand in line.
            ('w', Ok(guard)) => {
                guard.unlock().await.unwrap_err();
                continue;
            }
            (_, waiter) => waiter.unwrap_err(),
        };
        assert_eq!(waiter.kind(), ErrorKind::Corrupt, "{wrong}: {waiter}");
        assert_eq!(cli(&server, &["GET", &wrong]), "precious");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_version_has_written_is_refused_and_not_interpreted() {
    let server = server();
    let locker = client(&server).await;
    let held = locker.mutex("n").ttl(ms(60_000)).lock().await.unwrap();
    let key = key_of(&server, "n");
    cli(&server, &["SETRANGE", &key, "0", "2"]);
    for _ in 0..2 {
        let error = locker.mutex("n").try_lock().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    }
    cli(&server, &["SETRANGE", &key, "0", "1"]);
    let mut redis = raw(&server).await;
    let _: () = redis::cmd("ZADD")
        .arg(&[
            &format!("{key}q"),
            "1",
            &format!("{:.<65}", "0123456789abcdef"),
        ])
        .query_async(&mut redis)
        .await
        .unwrap();
    for place in ["version 2", "9999999999999:1"] {
        cli(
            &server,
            &["HSET", &format!("{key}w"), "0123456789abcdef", place],
        );
        cli(&server, &["DEL", &key]);
        let error = locker.mutex("n").fair().try_lock().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.to_string().contains("version"), "{error}");
        let found = cli(&server, &["HGET", &format!("{key}w"), "0123456789abcdef"]);
        assert_eq!(found, place);
    }
    drop(held);

    let permits = locker
        .semaphore("s", 2)
        .ttl(ms(60_000))
        .acquire()
        .await
        .unwrap();
    let holds = cli(&server, &["KEYS", "lk:*semaphore/s.h"]);
    let fields = cli(&server, &["HKEYS", &holds]);
    assert!(fields.lines().count() >= 2);
    // A field of any bytes: through a script, which Lua's decimal escapes can name.
    let id: String = permits
        .id()
        .attempt()
        .as_bytes()
        .iter()
        .map(|byte| format!("\\{byte:03}"))
        .collect();
    cli(
        &server,
        &[
            "EVAL",
            &format!("redis.call('HSET', KEYS[1], '{id}', 'version 2') return 1"),
            "1",
            &holds,
        ],
    );
    let resource = locker.semaphore("s", 2).resource().unwrap();
    let error = locker.inspect(&resource).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    let error = locker.request_release(&resource).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_with_any_characters_are_apart() {
    let server = server();
    let locker = client(&server).await;
    let long = "x".repeat(200);
    let names = [
        "a", "a.", "a.q", "a.w", "A", "a/b", "a%2Fb", "a:b", "{a}", "{a", "a}", "{}", "}{", "*",
        "a*", "?", "[a]", "\\", "\0", "a\0b", "a b", "ä", "a\u{308}", "日本", "🦀", "fence",
        "server", "in", &long,
    ];
    let mut guards = Vec::new();
    for name in names {
        let held = locker.mutex(name).try_lock().await;
        guards.push(
            held.unwrap_or_else(|error| panic!("{name}: {error}"))
                .expect(name),
        );
    }
    for name in names {
        assert!(
            locker.mutex(name).try_lock().await.unwrap().is_none(),
            "{name}"
        );
        let found = locker.inspect(&mutex(name)).await.unwrap();
        assert_eq!(found.resource.name().as_str(), name);
    }
    assert_eq!(locker.list("").await.unwrap().len(), names.len());
    for guard in guards {
        let_go(guard).await;
    }
    assert!(locker.list("").await.unwrap().is_empty());
    for name in ["", &"x".repeat(65_536)] {
        let error = locker.mutex(name).try_lock().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidName, "{name:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_that_has_lost_its_expiry_gets_one_from_who_waits_and_survives_who_asks() {
    let server = server();
    let (holder, waiter) = (client(&server).await, client(&server).await);
    let guard = holder
        .mutex("n")
        .ttl(ms(60_000))
        .without_watchdog()
        .lock()
        .await
        .unwrap();
    let key = key_of(&server, "n");
    cli(&server, &["PERSIST", &key]);
    assert_eq!(waiter.request_release(&mutex("n")).await.unwrap(), 1);
    soon(guard.revocation_requested()).await;
    assert!(
        waiter.mutex("n").try_lock().await.unwrap().is_none(),
        "two hold it"
    );
    cli(&server, &["PERSIST", &key]);
    assert!(
        waiter.mutex("n").try_lock().await.unwrap().is_none(),
        "two hold it"
    );
    let left: i64 = cli(&server, &["PTTL", &key]).parse().unwrap();
    assert!((1..=60_000).contains(&left), "it stays for ever: {left}");
    let_go(guard).await;
    let next = waiter.mutex("n").try_lock().await.unwrap().unwrap();
    assert_eq!(waiter.evict(next.id()).await.unwrap(), Released::Done);
    assert_eq!(soon(next.lost()).await, LossReason::Gone);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_somebody_spoils_costs_its_own_hold_and_no_other() {
    let server = server();
    let locker = client(&server).await;
    let (mut mutexes, mut permits) = (Vec::new(), Vec::new());
    for number in 0..8 {
        let name = format!("n{number}");
        mutexes.push(locker.mutex(&name).ttl(ms(1_500)).lock().await.unwrap());
        permits.push(
            locker
                .semaphore(&name, 2)
                .ttl(ms(1_500))
                .acquire()
                .await
                .unwrap(),
        );
    }
    for pattern in ["lk:*mutex/n3.", "lk:*semaphore/n3.h", "lk:*semaphore/n5.x"] {
        let key = cli(&server, &["KEYS", pattern]);
        cli(&server, &["DEL", &key]);
        cli(&server, &["RPUSH", &key, "precious"]);
    }
    sleep(ms(4_000)).await;
    let lost = |guards: &[lockkit_core::Guard]| -> Vec<usize> {
        (0..8).filter(|at| !guards[*at].is_held()).collect()
    };
    assert_eq!((lost(&mutexes), lost(&permits)), (vec![3], vec![3, 5]));
}
