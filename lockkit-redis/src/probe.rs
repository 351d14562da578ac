//! Is the server well, and fit for locks?

use futures_util::future::try_join_all;
use lockkit_core::{Error, Result};

use crate::shared::Shared;
use crate::transport::{Request, Server};

impl Shared {
    /// See [`Backend::probe`](lockkit_core::Backend::probe).
    pub(crate) async fn probe(&self) -> Result<Vec<(&'static str, String)>> {
        let servers = self.route.all().await?;
        // Asked anew: settings and replicas change while a connection lasts.
        let answers = servers.iter().map(|live| async move {
            let address = &live.server.address;
            let named = |error: Error| error.with("server", address);
            let server = live.ask_again().await.map_err(named)?;
            Ok::<_, Error>([vec![("server", address.clone())], about(&server)].concat())
        });
        Ok(try_join_all(answers).await?.concat())
    }

    /// Ends the connections, once what is on its way has been worked on.
    pub(crate) async fn close(&self) {
        // A server answers in the order in which it was asked. One that does not answer is told to
        // forget this connection by whoever comes next, or does what it was asked, for one lease.
        for live in self.route.all_up() {
            let _ = live.send(&Request::new("PING")).await;
        }
        self.route.close();
    }
}

/// What an operator wants to know of a server, each with what it means for locks.
fn about(server: &Server) -> Vec<(&'static str, String)> {
    let info = |name| server.info(name).unwrap_or("not told");
    let role = match (server.is_replica, info("connected_slaves")) {
        (true, _) => "replica: takes no locks".to_owned(),
        (false, "0") => "master, without replicas".to_owned(),
        (false, "not told") => "master".to_owned(),
        (false, replicas) => format!(
            "master of {replicas}: a failover can lose the newest grants and let two hold one lock; \
             `replicas=` makes that rarer, fences make it harmless"
        ),
    };
    let persistence = match (info("aof_enabled"), server.appendfsync.as_deref()) {
        ("1", Some("always")) => "every write is on disk before it counts".to_owned(),
        ("1", Some(when)) => {
            format!("log written {when}: a crash forgets the newest grants, and fences leap past them")
        }
        ("1", None) => "log of changes".to_owned(),
        ("0", _) => {
            "no log: a restart frees every lock at once, held or not; fences still rise by the clock"
                .to_owned()
        }
        _ => "not told".to_owned(),
    };
    vec![
        ("version", server.version.clone()),
        ("role", role),
        ("persistence", persistence),
        ("eviction", eviction(server)),
    ]
}

/// What becomes of locks when its memory is full.
pub(crate) fn eviction(server: &Server) -> String {
    let info = |name| server.info(name).unwrap_or("not told");
    match (info("maxmemory"), info("maxmemory_policy")) {
        ("0", policy) => format!("{policy}, without a limit of memory: no lock is thrown away"),
        (_, "noeviction") => {
            "noeviction: a full server refuses new locks, and keeps those held".into()
        }
        (_, "not told") => "not told".into(),
        (_, policy) => format!("{policy}: A FULL SERVER THROWS LOCKS AWAY; set it to noeviction"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(info: &str, appendfsync: &str) -> Server {
        Server {
            address: String::new(),
            version: "7.0.15".into(),
            run_id: String::new(),
            reign: String::new(),
            is_reign_told: false,
            is_sentinel: false,
            is_replica: false,
            is_cluster: false,
            connection: 1,
            info: info.replace(' ', "\r\n"),
            appendfsync: Some(appendfsync.into()),
        }
    }

    fn fact(server: &Server, name: &str) -> String {
        let facts = about(server);
        facts
            .into_iter()
            .find(|(known, _)| *known == name)
            .unwrap()
            .1
    }

    #[test]
    fn what_a_setting_means_is_said_beside_it() {
        let safe = server(
            "connected_slaves:0 aof_enabled:1 maxmemory:0 maxmemory_policy:noeviction",
            "always",
        );
        assert!(fact(&safe, "role").contains("without replicas"));
        assert!(fact(&safe, "persistence").contains("before it counts"));
        assert!(fact(&safe, "eviction").contains("no lock is thrown away"));
        let risky = server(
            "connected_slaves:2 aof_enabled:0 maxmemory:9 maxmemory_policy:allkeys-lru",
            "everysec",
        );
        assert!(fact(&risky, "role").contains("failover"));
        assert!(fact(&risky, "persistence").contains("restart frees"));
        assert!(fact(&risky, "eviction").contains("THROWS LOCKS AWAY"));
        assert_eq!(fact(&server("", "x"), "persistence"), "not told");
    }
}
