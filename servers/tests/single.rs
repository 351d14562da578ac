//! One Redis server in all its ways.

use std::process::Command;

use lockkit_servers::Authority;
use lockkit_servers::redis::{AppendOnly, RedisServer, acl};

#[test]
fn a_server_is_killed_and_restarted_on_its_port_and_has_forgotten() {
    let mut server = RedisServer::start().unwrap();
    let (url, pid) = (server.url(), server.pid());
    assert_eq!(url, format!("redis://127.0.0.1:{}", server.port()));
    assert_eq!(server.cli(&["SET", "key", "value"]).unwrap(), "OK");

    server.kill().unwrap();
    let error = server.cli(&["PING"]).unwrap_err();
    assert!(format!("{error:#}").contains("refused"), "{error:#}");

    server.restart().unwrap();
    assert_eq!(server.url(), url);
    assert_ne!(server.pid(), pid);
    assert_eq!(server.cli(&["GET", "key"]).unwrap(), "");
}

#[test]
fn what_is_appended_always_is_there_after_a_kill() {
    let mut server = RedisServer::builder()
        .append_only(AppendOnly::Always)
        .start()
        .unwrap();
    server.cli(&["SET", "key", "value"]).unwrap();
    server.kill().unwrap();
    server.restart().unwrap();
    assert_eq!(server.cli(&["GET", "key"]).unwrap(), "value");
}

#[test]
fn an_error_reply_is_an_error() {
    let server = RedisServer::start().unwrap();
    server.cli(&["SET", "key", "value"]).unwrap();
    let error = server.cli(&["INCR", "key"]).unwrap_err();
    assert!(format!("{error:#}").contains("not an integer"), "{error:#}");
}

#[test]
fn a_paused_server_goes_on_where_it_was() {
    let server = RedisServer::start().unwrap();
    server.cli(&["SET", "key", "value"]).unwrap();
    server.pause().unwrap();
    server.resume().unwrap();
    assert_eq!(server.cli(&["GET", "key"]).unwrap(), "value");
}

#[test]
fn a_server_that_does_not_start_tells_the_end_of_its_log() {
    let error = RedisServer::builder().config("nonsense yes").start();
    let error = format!("{:#}", error.unwrap_err());
    assert!(error.contains("Bad directive"), "{error}");
}

#[test]
fn a_dropped_server_leaves_nothing() {
    let server = RedisServer::start().unwrap();
    let directory = server.directory().to_owned();
    let address = server.address();
    drop(server);
    assert!(!directory.exists());
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[test]
fn a_server_listens_on_its_unix_socket() {
    let server = RedisServer::builder().unix_socket().start().unwrap();
    assert!(server.socket().unwrap().exists());
}

#[test]
fn a_replica_has_what_its_master_has() {
    let master = RedisServer::builder().password("secret").start().unwrap();
    let replica = RedisServer::builder()
        .password("secret")
        .replica_of(master.port())
        .start()
        .unwrap();
    master.cli(&["SET", "key", "value"]).unwrap();
    assert_eq!(master.cli(&["WAIT", "1", "10000"]).unwrap(), "1");
    assert_eq!(replica.cli(&["GET", "key"]).unwrap(), "value");
}

/// What `redis-cli` says to one command at this URL.
fn at(url: &str, arguments: &[&str]) -> String {
    let mut call = Command::new("redis-cli");
    call.args(["--no-auth-warning", "-u", url]).args(arguments);
    let output = call.output().expect("redis-cli");
    let both = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&both).trim().to_owned()
}

#[test]
fn the_user_for_locks_has_the_rights_for_locks_and_no_more() {
    let server = RedisServer::builder()
        .password("p@ss/word")
        .user(acl::USER, acl::PASSWORD, acl::RULES)
        .start()
        .unwrap();
    assert!(at(&format!("redis://{}", server.address()), &["PING"]).contains("NOAUTH"));
    assert_eq!(at(&server.url(), &["PING"]), "PONG");

    let url = server.url_of(acl::USER, acl::PASSWORD);
    let allowed: [&[&str]; 5] = [
        &["SET", "lk:a", "1", "PX", "1000"],
        &["EVAL", "return redis.call('TIME')[1]", "0"],
        &["PUBLISH", "lk:in:a", "x"],
        &["ZADD", "lk:a:q", "1", "x"],
        &["INFO", "server"],
    ];
    for command in allowed {
        let reply = at(&url, command);
        assert!(!reply.contains("NOPERM"), "{command:?}: {reply}");
    }
    let refused: [&[&str]; 6] = [
        &["GET", "other"],
        &["PUBLISH", "other", "x"],
        &["KEYS", "*"],
        &["CONFIG", "GET", "save"],
        &["FLUSHALL"],
        &["EVAL", "return redis.call('KEYS', '*')", "0"],
    ];
    for command in refused {
        let reply = at(&url, command);
        let is_refused = reply.contains("NOPERM") || reply.contains("can't run this command");
        assert!(is_refused, "{command:?}: {reply}");
    }
}

/// What `redis-cli` says to a PING over TLS with these certificates.
fn over_tls(server: &RedisServer, options: &[&str]) -> String {
    let port = server.port().to_string();
    let mut call = Command::new("redis-cli");
    call.args(["-h", "127.0.0.1", "-p", &port, "--tls"]);
    let output = call.args(options).arg("PING").output().expect("redis-cli");
    let both = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&both).trim().to_owned()
}

#[test]
fn a_server_with_tls_is_trusted_through_its_authority_only() {
    let authority = Authority::new().unwrap();
    let server = RedisServer::builder()
        .tls(&authority, &authority.server().unwrap())
        .unwrap()
        .start()
        .unwrap();
    let ca = server.ca().unwrap();
    assert_eq!(
        server.url(),
        format!("rediss://{}?ca={}", server.address(), ca.display())
    );
    assert_eq!(
        over_tls(&server, &["--cacert", ca.to_str().unwrap()]),
        "PONG"
    );
    let stranger = Authority::new().unwrap().ca();
    assert_ne!(
        over_tls(&server, &["--cacert", stranger.to_str().unwrap()]),
        "PONG"
    );
}

#[test]
fn a_server_with_mutual_tls_refuses_strangers() {
    let authority = Authority::new().unwrap();
    let server = RedisServer::builder()
        .mutual_tls(&authority, &authority.server().unwrap())
        .unwrap()
        .start()
        .unwrap();
    let ca = server.ca().unwrap();
    let ca = ["--cacert", ca.to_str().unwrap()];
    assert_ne!(over_tls(&server, &ca), "PONG");
    let client = authority.client("app").unwrap();
    let (certificate, key) = (client.certificate.to_str(), client.key.to_str());
    let own = ["--cert", certificate.unwrap(), "--key", key.unwrap()];
    assert_eq!(over_tls(&server, &[ca.as_slice(), &own].concat()), "PONG");
}

#[test]
fn a_server_with_an_expired_certificate_starts_and_is_not_trusted() {
    let authority = Authority::new().unwrap();
    let server = RedisServer::builder()
        .tls(&authority, &authority.expired_server().unwrap())
        .unwrap()
        .start()
        .unwrap();
    let ca = server.ca().unwrap();
    let reply = over_tls(&server, &["--cacert", ca.to_str().unwrap()]);
    assert!(reply.contains("certificate verify failed"), "{reply}");
}
