//! Parts of the conformance suite where little is different from what others run in full: RedLock on
//! servers that ask for certificates, passwords and rights, and `strategy=simple` on a master that
//! sentinels watch.

#[path = "../redlock_conformance/corner.rs"]
mod corner;
#[path = "../conformance/server.rs"]
mod server;

use std::process::ExitCode;
use std::sync::OnceLock;

use corner::{Corner, Servers};
use libtest_mimic::{Arguments, Trial};
use lockkit_redis::Redlock;
use lockkit_servers::Authority;
use lockkit_servers::redis::{RedisServer, acl, env};
use lockkit_testkit::{Harness, cases, peer_main, trials};
use server::Server;

/// What touches connections, rights and processes.
const TOPICS: [&str; 5] = ["contract", "exclusion", "lease", "detach", "processes"];

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("lockkit-testkit-peer") {
        return peer_main(|url| async move {
            match url.contains("redlock") {
                true => Ok(Box::new(Redlock::connect(&url).await?) as _),
                false => lockkit_redis::connect(&url).await,
            }
        });
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(8);
    let trials = [
        some("simple_sentinel", || Server::simple(env::SENTINEL)),
        some("redlock_secured", || Corner::of(secured().clone())),
    ];
    libtest_mimic::run(&arguments, trials.into_iter().flatten().collect()).exit_code()
}

fn some<H: Harness>(label: &str, new: impl Fn() -> H + Send + Sync + 'static) -> Vec<Trial> {
    let mut cases = cases();
    cases.retain(|case| TOPICS.contains(&case.group));
    for case in &mut cases {
        case.group = format!("{label}::{}", case.group).leak();
    }
    trials(new, cases)
}

/// Three servers that let in who has a certificate and a password, with no more rights than locks
/// need. An operator comes through their sockets. They end with this program.
fn secured() -> &'static Option<Servers> {
    static SERVERS: OnceLock<(Vec<RedisServer>, Option<Servers>)> = OnceLock::new();
    let start = || -> Option<Vec<RedisServer>> {
        let authority = Authority::new().ok()?;
        let rules = acl::RULES.replace("lk:*", "t*");
        let certificate = authority.server().ok()?;
        let server = |_| {
            let builder = RedisServer::builder()
                .password("of-the-operator")
                .user(acl::USER, acl::PASSWORD, &rules)
                .unix_socket()
                .mutual_tls(&authority, &certificate)
                .ok()?;
            builder
                .start()
                .inspect_err(|error| eprintln!("{error:#}"))
                .ok()
        };
        (0..3).map(server).collect()
    };
    let all = SERVERS.get_or_init(|| {
        let Some(servers) = start() else {
            return (Vec::new(), None);
        };
        let operator = servers.iter().filter_map(RedisServer::socket);
        let operator =
            operator.map(|path| format!("redis+unix://{}?pass=of-the-operator", path.display()));
        let addresses: Vec<String> = servers.iter().map(RedisServer::address).collect();
        let first = servers[0].url_of(acl::USER, acl::PASSWORD);
        let url = first
            .replace("rediss://", "rediss+redlock://")
            .replace(&addresses[0], &addresses.join(","));
        let operator = operator.collect();
        (servers, Some(Servers { url, operator }))
    });
    &all.1
}
