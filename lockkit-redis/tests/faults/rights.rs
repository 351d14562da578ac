//! Logins, rights, and certificates.

use std::error::Error as _;

use lockkit_core::{Error, ErrorKind, Locker, Result};
use lockkit_redis::Redis;
use lockkit_servers::Authority;
use lockkit_servers::redis::{RedisServer, acl};

use crate::rig::*;

/// What must be seen nowhere.
const CANARY: &str = "canary-9f2c";

/// Everything that an error can show.
fn all_of(error: &Error) -> String {
    let mut all = format!("{error} {error:?} {error:#?}");
    let mut source = error.source();
    while let Some(inner) = source {
        all += &format!(" {inner} {inner:?}");
        source = inner.source();
    }
    all
}

async fn refused(url: &str) -> Error {
    let error = soon(Box::pin(Redis::connect(url))).await.unwrap_err();
    assert!(!all_of(&error).contains(CANARY), "it tells the password");
    error
}

/// Uses one of each kind.
async fn uses_everything(locker: &Locker) -> Result<()> {
    let guard = locker.mutex("m").lock().await?;
    let lock = locker.mutex("m").fair();
    let waiter = tokio::spawn(async move { lock.lock().await });
    in_line(locker, "m", 1).await;
    locker.request_release(&mutex("m")).await?;
    let _ = guard.unlock().await?;
    let guard = soon(waiter).await.unwrap()?;
    let id = guard.detach(ms(60_000)).await?;
    locker.evict(&id).await?;
    let rw = locker.read_write("rw");
    let _ = rw.write().lock().await?.unlock().await?;
    let _ = rw.read().lock().await?.unlock().await?;
    let semaphore = locker.semaphore("s", 3);
    let permits = semaphore.acquire_many(2).await?;
    let _ = semaphore.set_limit(4).await?;
    let _ = permits.unlock().await?;
    let _ = locker.segmented("g", 4).lock_any().await?.unlock().await?;
    let latch = locker.latch("l");
    latch.try_set(1).await?;
    latch.count_down("a").await?;
    latch.wait().await?;
    let _ = locker.multi_lock(["a", "b"]).lock().await?.unlock().await?;
    locker.list("").await?;
    locker.probe().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_with_the_documented_rights_can_use_everything_and_nothing_else() {
    let builder = RedisServer::builder().password("of-the-operator").user(
        acl::USER,
        acl::PASSWORD,
        acl::RULES,
    );
    let server = started(builder);
    let locker = locker(&server.url_of(acl::USER, acl::PASSWORD)).await;
    cli(&server, &["ACL", "LOG", "RESET"]);
    uses_everything(&locker).await.unwrap();
    let denied = cli(&server, &["ACL", "LOG"]);
    // What is asked for and not needed.
    let spare = ["config|get", "client|kill", "client|setinfo"];
    let objects: Vec<_> = denied
        .lines()
        .zip(denied.lines().skip(1))
        .filter_map(|(name, value)| (name == "object").then_some(value))
        .filter(|object| !spare.contains(object))
        .collect();
    assert!(objects.is_empty(), "{denied}");
    let other = format!("{}?prefix=other", server.url_of(acl::USER, acl::PASSWORD));
    let other = Locker::new(Redis::connect(&other).await.unwrap()).unwrap();
    let error = other.mutex("n").try_lock().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_that_is_missing_is_named_and_nothing_is_half_done() {
    let rules = "~lk:* &lk:* +@all -evalsha -eval";
    let server = started(RedisServer::builder().user("few", CANARY, rules));
    let url = server.url_of("few", CANARY);
    let error = match Redis::connect(&url).await {
        Err(error) => error,
        Ok(backend) => {
            let locker = Locker::new(backend).unwrap();
            locker.mutex("n").try_lock().await.unwrap_err()
        }
    };
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    assert!(all_of(&error).contains("evalsha"), "{error}");
    assert!(!all_of(&error).contains(CANARY));
    // Rights that are taken away later.
    cli(&server, &["ACL", "SETUSER", "few", "+evalsha", "+eval"]);
    let locker = locker(&url).await;
    let guard = locker.mutex("n").lock().await.unwrap();
    cli(&server, &["ACL", "SETUSER", "few", "-incr"]);
    let error = locker.mutex("other").try_lock().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    assert!(guard.is_held());
    let_go(guard).await;
    assert_eq!(cli(&server, &["KEYS", "lk:*mutex*"]), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_scripts_were_taken_away_says_so() {
    let server = started(RedisServer::builder().config("rename-command EVALSHA \"\""));
    let error = match Redis::connect(&server.url()).await {
        Err(error) => error,
        Ok(backend) => {
            let locker = Locker::new(backend).unwrap();
            soon(locker.mutex("n").lock()).await.unwrap_err()
        }
    };
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(all_of(&error).to_lowercase().contains("evalsha"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_is_refused_is_an_error_at_once_and_no_password_is_shown() {
    let server = started(RedisServer::builder().password("right-1b7"));
    let wrong = [
        server.url_of("default", CANARY),
        server.url_of("nobody", CANARY),
        format!("redis://{}", server.address()),
    ];
    for url in wrong {
        let error = refused(&url).await;
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    }
    // URLs that are wrong in other ways do not show it either.
    let port = server.port();
    for url in [
        format!("redis://default:{CANARY}@127.0.0.1:{port}/x"),
        format!("redis://default:{CANARY}@127.0.0.1:port"),
        format!("redis://default:{CANARY}@127.0.0.1:{port}?nonsense={CANARY}"),
        format!("redis://{CANARY}@"),
        format!("redis:{CANARY}"),
        format!("other://default:{CANARY}@127.0.0.1"),
        format!("redis://default:{CANARY}@lock.example.com"),
        format!("redis://127.0.0.1:{port}?password_file=/{CANARY}/none"),
    ] {
        let error = soon(Box::pin(Redis::connect(&url))).await.unwrap_err();
        let is_path = url.contains("password_file");
        assert!(
            is_path || !all_of(&error).contains(CANARY),
            "{url}: {}",
            all_of(&error)
        );
    }

    let password = "right-1b7";
    let backend = Redis::connect(&server.url()).await.unwrap();
    let told = format!("{backend:?} {backend:#?}");
    let locker = Locker::new(backend).unwrap();
    let guard = locker.mutex("n").lock().await.unwrap();
    let told = format!(
        "{told} {locker:?} {guard:?} {:?}",
        locker.probe().await.unwrap()
    );
    assert!(!told.contains(password), "{told}");
    // A password that is changed while clients are connected.
    cli(&server, &["CONFIG", "SET", "masterauth", ""]);
    cli(
        &server,
        &["ACL", "SETUSER", "default", "resetpass", ">another-4d"],
    );
    cli_as(&server, "another-4d", &["CLIENT", "KILL", "TYPE", "normal"]);
    cli_as(&server, "another-4d", &["CLIENT", "KILL", "TYPE", "pubsub"]);
    let error = soon(locker.mutex("other").try_lock()).await.unwrap_err();
    assert!(!all_of(&error).contains(password), "{}", all_of(&error));
    drop(guard);
}

/// An operator who knows a newer password.
fn cli_as(server: &RedisServer, password: &str, command: &[&str]) {
    let port = server.port().to_string();
    tokio::task::block_in_place(|| {
        let status = std::process::Command::new("redis-cli")
            .env("REDISCLI_AUTH", password)
            .args(["-h", "127.0.0.1", "-p", &port])
            .args(command)
            .stdout(std::process::Stdio::null())
            .status();
        assert!(status.unwrap().success());
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_can_come_from_a_file() {
    let server = started(RedisServer::builder().password(CANARY));
    let file = server.directory().join("password");
    std::fs::write(&file, format!("{CANARY}\n")).unwrap();
    let url = format!(
        "redis://{}?password_file={}",
        server.address(),
        file.display()
    );
    Register::new()
        .use_once(&locker(&url).await.mutex("n"), ms(0))
        .await;
    std::fs::write(&file, "wrong").unwrap();
    let error = refused(&url).await;
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
}

#[cfg(feature = "tls")]
#[tokio::test(flavor = "multi_thread")]
async fn only_a_server_whose_certificate_is_good_is_talked_to() {
    let (ours, theirs) = (Authority::new().unwrap(), Authority::new().unwrap());
    let certificate = ours.server().unwrap();
    let builder = RedisServer::builder().password(CANARY);
    let server = started(builder.mutual_tls(&ours, &certificate).unwrap());
    let url = server.url();
    Register::new()
        .use_once(&locker(&url).await.mutex("n"), ms(0))
        .await;

    let ca = server.ca().unwrap().display().to_string();
    let wrong_ca = url.replace(
        &format!("ca={ca}"),
        &format!("ca={}", theirs.ca().display()),
    );
    assert_ne!(wrong_ca, url);
    let (no_ca, _) = url.split_once('?').unwrap();
    let (without_client, _) = url.split_once("&cert").unwrap();
    let plain = url.replace("rediss://", "redis://");
    let (plain, _) = plain.split_once('?').unwrap();
    for wrong in [&wrong_ca, no_ca, without_client, plain] {
        let error = refused(wrong).await;
        assert!(
            matches!(
                error.kind(),
                ErrorKind::Unavailable | ErrorKind::PermissionDenied
            ),
            "{wrong}: {error}"
        );
    }
    let expired = theirs.expired_server().unwrap();
    let server = started(RedisServer::builder().tls(&theirs, &expired).unwrap());
    refused(&server.url()).await;
    let other_name = theirs.server_for(&["lock.example.com"]).unwrap();
    let server = started(RedisServer::builder().tls(&theirs, &other_name).unwrap());
    refused(&server.url()).await;
}
