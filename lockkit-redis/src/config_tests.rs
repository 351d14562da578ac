use lockkit_core::ErrorKind;

use super::*;

/// Any error that shows it fails the test.
const CANARY: &str = "s3cr3t-canary";

fn single(url: &str) -> Endpoint {
    match Config::parse(url).unwrap().topology {
        Topology::Single(endpoint) => endpoint,
        other => panic!("{other:?}"),
    }
}

fn refusal(url: &str) -> String {
    let error = Config::parse(url).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidConfig, "{url}");
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains(CANARY), "{shown}");
    error.to_string()
}

#[test]
fn reads_addresses_logins_and_databases() {
    assert_eq!(single("redis://h").to_string(), "h:6379");
    assert_eq!(single("redis://[::1]:7/3").to_string(), "[::1]:7");
    assert_eq!(single("redis://h:7/3").database, 3);
    assert_eq!(
        single("redis+unix:///run/r.sock").to_string(),
        "/run/r.sock"
    );
    let endpoint = single(&format!("redis://me:{CANARY}%40@localhost"));
    assert_eq!(endpoint.login.user.as_deref(), Some("me"));
    assert_eq!(
        endpoint.login.password.unwrap().reveal(),
        format!("{CANARY}@")
    );
    let endpoint = single("redis://:p%3Aw@127.0.0.1");
    assert_eq!(endpoint.login.user, None);
    assert_eq!(endpoint.login.password.unwrap().reveal(), "p:w");
}

#[test]
fn reads_options() {
    let options = Config::parse("redis://h?prefix=a-b_1&timeout=250ms&replicas=2&strategy=simple")
        .unwrap()
        .options;
    assert_eq!(options.prefix, "a-b_1");
    assert_eq!(options.timeout, Duration::from_millis(250));
    assert_eq!((options.replicas, options.strategy), (2, Strategy::Simple));
}

#[test]
fn reads_sentinels_and_clusters() {
    let url = "redis+sentinel://me:pw@127.0.0.1,localhost:5/shop/2?sentinel_password=other";
    let Topology::Sentinel {
        sentinels,
        service,
        master,
    } = Config::parse(url).unwrap().topology
    else {
        panic!("not sentinels")
    };
    assert_eq!((service.as_str(), master.database), ("shop", 2));
    assert_eq!(sentinels[0].to_string(), "127.0.0.1:26379");
    assert_eq!(
        sentinels[1].login.password.as_ref().unwrap().reveal(),
        "other"
    );
    assert_eq!(master.login.password.unwrap().reveal(), "pw");
    let Topology::Cluster(nodes) = Config::parse("redis+cluster://a:1,b:2").unwrap().topology
    else {
        panic!("not a cluster")
    };
    assert_eq!(nodes[1].to_string(), "b:2");
}

#[test]
fn a_wrong_url_is_refused_with_the_cure_and_without_the_password() {
    for (url, cure) in [
        (format!("redis:{CANARY}"), "two slashes"),
        ("redis://".into(), "host is missing"),
        (format!("redis://u:{CANARY}@h:notaport"), "HOST:PORT"),
        (format!("redis://u:{CANARY}@h:0"), "HOST:PORT"),
        (
            format!("redis://u:{CANARY}@localhost/abc"),
            "number of a database",
        ),
        (
            format!("redis://u:{CANARY}@localhost?x=1"),
            "unknown field `x`",
        ),
        (
            format!("redis://u:{CANARY}@localhost?timeout=9h"),
            "timeout is a time",
        ),
        (
            format!("redis://u:{CANARY}@localhost?prefix=a%7Bb"),
            "prefix is 1 to 32",
        ),
        (
            format!("redis://u:{CANARY}@localhost?strategy=best"),
            "direct or simple",
        ),
        (format!("redis://u:{CANARY}@localhost,other"), "one server"),
        (
            format!("redis+sentinel://u:{CANARY}@localhost"),
            "name of the master",
        ),
        (
            format!("redis+cluster://u:{CANARY}@localhost/1"),
            "no databases",
        ),
        (format!("redis+unix://u:{CANARY}@h/run/r"), "full path"),
        (
            format!("redis://u:{CANARY}@localhost?password_file=/none"),
            "cannot be read",
        ),
        (
            format!("redis://u:{CANARY}@localhost?cert=/dev/null"),
            "give both",
        ),
    ] {
        let message = refusal(&url);
        assert!(message.contains(cure), "{message}");
    }
}

#[test]
fn a_password_does_not_travel_in_clear_unless_told_to() {
    let url = format!("redis://u:{CANARY}@10.0.0.1");
    assert!(refusal(&url).contains("rediss://"));
    assert!(Config::parse(&format!("{url}?allow_plaintext=true")).is_ok());
    assert!(Config::parse("redis://10.0.0.1").is_ok(), "no password");
}

#[test]
fn a_password_comes_from_a_file_too() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("password");
    std::fs::write(&file, format!("{CANARY}\n")).unwrap();
    let endpoint = single(&format!(
        "redis://localhost?password_file={}",
        file.display()
    ));
    assert_eq!(endpoint.login.password.unwrap().reveal(), CANARY);
}

#[test]
fn nothing_shows_a_password() {
    let url = format!("redis+sentinel://u:{CANARY}@127.0.0.1/m?sentinel_password={CANARY}");
    let shown = format!("{:?}", Config::parse(&url).unwrap());
    assert!(!shown.contains(CANARY), "{shown}");
}

#[cfg(not(feature = "tls"))]
#[test]
fn without_the_feature_tls_is_refused_by_its_name() {
    assert!(refusal("rediss://h").contains("cargo feature `tls`"));
}
