//! Choosing a backend by its URL alone: each one that was built passes the same program.
//!
//! `LOCKKIT_TEST_URL` adds another; a service that it names and that is absent is a failure.

use lockkit::{ErrorKind, Result, Unlocked};

/// What every backend must do, whatever its URL.
async fn one_holder_at_a_time(url: &str) -> Result<()> {
    let (a, b) = (lockkit::connect(url).await?, lockkit::connect(url).await?);
    let guard = a.mutex("n").lock().await?;
    assert!(a.mutex("n").try_lock().await?.is_none(), "{url}");
    assert!(b.mutex("n").try_lock().await?.is_none(), "{url}");
    assert!(b.mutex("n2").try_lock().await?.is_some(), "{url}");
    assert_eq!(guard.unlock().await?, Unlocked::Clean, "{url}");
    let next = b.mutex("n").try_lock().await?;
    assert!(next.is_some(), "{url}");
    drop(next);
    a.close().await?;
    b.close().await
}

/// A server of `cargo xtask test`, under a prefix of this run's own.
fn server(variable: &str) -> String {
    let url = std::env::var(variable).unwrap_or_else(|_| {
        panic!("{variable} is not set; run `cargo xtask test`, or `cargo xtask servers up redis`")
    });
    format!("{url}?prefix=facade{}", std::process::id())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_program_runs_on_every_backend() {
    let dir = tempfile::tempdir().unwrap();
    let redis = server("LOCKKIT_TEST_REDIS");
    let mut urls = vec![
        "memory:facade".to_owned(),
        format!("sqlite:{}", dir.path().join("l.db").display()),
        format!("{redis}&strategy=simple"),
        redis,
        server("LOCKKIT_TEST_REDIS_SENTINEL"),
        server("LOCKKIT_TEST_REDIS_CLUSTER"),
        server("LOCKKIT_TEST_REDLOCK"),
    ];
    urls.extend(std::env::var("LOCKKIT_TEST_URL"));
    let mut tested = Vec::new();
    for url in urls {
        one_holder_at_a_time(&url).await.unwrap();
        let locker = lockkit::connect(&url).await.unwrap();
        tested.push(locker.descriptor().driver);
        locker.close().await.unwrap();
    }
    for backend in lockkit::backends() {
        let driver = backend.driver;
        assert!(tested.contains(&driver), "{driver} has no URL here");
    }
}

#[tokio::test]
async fn each_mistake_in_a_url_has_its_own_words() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("l.db").display().to_string();
    let mut messages = Vec::new();
    for url in [
        "",
        "locks.db",
        "carrier-pigeon:coop",
        "memory:a?b=c",
        "sqlite:",
        "sqlite::memory:",
        &format!("sqlite:{file}?colour=blue"),
        &format!("sqlite:{file}?create=perhaps"),
        &format!("sqlite:{file}?create=false"),
    ] {
        let error = lockkit::connect(url).await.expect_err(url);
        assert_eq!(error.kind(), ErrorKind::InvalidConfig, "{url}: {error}");
        messages.push(error.to_string());
    }
    // The first two are one mistake: no scheme.
    messages.remove(0);
    let count = messages.len();
    messages.sort();
    messages.dedup();
    assert_eq!(messages.len(), count, "{messages:#?}");
    assert!(
        !std::path::Path::new(&file).exists(),
        "a mistake made a file"
    );
}
