//! A cluster: three masters with a replica each.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::server::RedisServer;
use crate::patience::until;

/// How long a failover on demand takes at most.
const VOTE: Duration = Duration::from_secs(6);

/// Six nodes: three masters, which share the 16384 slots, with a replica each. A node that is
/// silent for two seconds is replaced.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<RedisServer>,
}

impl Cluster {
    /// Starts the nodes, joins them, and waits until each says that all is well.
    ///
    /// # Errors
    ///
    /// If a node does not start, or they do not find each other.
    pub fn start() -> Result<Self> {
        let node = |_| {
            RedisServer::builder()
                .config("cluster-enabled yes")
                .config("cluster-node-timeout 2000")
                .start()
        };
        let nodes = (0..6).map(node).collect::<Result<Vec<_>>>()?;
        let addresses: Vec<_> = nodes.iter().map(RedisServer::address).collect();
        let mut create = vec!["create"];
        create.extend(addresses.iter().map(String::as_str));
        create.extend(["--cluster-replicas", "1", "--cluster-yes"]);
        nodes[0].cluster_task(&create)?;
        let cluster = Self { nodes };
        cluster.await_ok()?;
        Ok(cluster)
    }

    /// `redis+cluster://HOST:PORT,…` with all six nodes.
    #[must_use]
    pub fn url(&self) -> String {
        let addresses: Vec<_> = self.nodes.iter().map(RedisServer::address).collect();
        format!("redis+cluster://{}", addresses.join(","))
    }

    /// The six nodes, in the order of their start.
    #[must_use]
    pub fn nodes(&self) -> &[RedisServer] {
        &self.nodes
    }

    /// The six nodes, to be stopped and restarted.
    pub fn nodes_mut(&mut self) -> &mut [RedisServer] {
        &mut self.nodes
    }

    /// Waits until every node says that the cluster is well, and every replica is in touch with
    /// its master.
    ///
    /// # Errors
    ///
    /// If that does not come to pass, such as when a node is paused.
    pub fn await_ok(&self) -> Result<()> {
        until("a cluster that is well", || {
            for node in &self.nodes {
                let info = node.cli(&["CLUSTER", "INFO"])?;
                let is_ok =
                    info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:6");
                let is_linked = is_master(node)? || node.is_linked_replica()?;
                if !is_ok || !is_linked {
                    return Ok(None);
                }
            }
            Ok(Some(()))
        })
    }

    /// The slot of a key.
    ///
    /// # Errors
    ///
    /// If no node answers.
    pub fn slot_of(&self, key: &str) -> Result<u16> {
        let slot = self.nodes[0].cli(&["CLUSTER", "KEYSLOT", key])?;
        Ok(slot.parse()?)
    }

    /// Which of the [`nodes`](Self::nodes) is the master of a slot, in the eyes of all masters
    /// that answer.
    ///
    /// # Errors
    ///
    /// If none does, or they do not agree.
    pub fn master_of(&self, slot: u16) -> Result<usize> {
        let masters = self.nodes.iter().filter_map(|node| {
            let known = node.ask(&["CLUSTER", "NODES"])?;
            known
                .lines()
                .any(|line| line.contains("myself,master"))
                .then(|| owner(&known, slot))
        });
        let mut owners = masters.collect::<Vec<_>>();
        owners.dedup();
        let [Some(port)] = owners.as_slice() else {
            bail!("the masters name {owners:?} as owner of slot {slot}");
        };
        let is_it = |node: &RedisServer| node.port() == *port;
        let found = self.nodes.iter().position(is_it);
        found.with_context(|| format!("slot {slot} is at port {port}, which is not ours"))
    }

    /// The replica of a master, both as their place among the [`nodes`](Self::nodes).
    ///
    /// # Errors
    ///
    /// If the master does not answer or has none.
    pub fn replica_of(&self, master: usize) -> Result<usize> {
        let replication = self.nodes[master].cli(&["INFO", "replication"])?;
        let is_it =
            |node: &RedisServer| replication.contains(&format!("port={},state=", node.port()));
        let found = self.nodes.iter().position(is_it);
        found.with_context(|| format!("node {master} has no replica"))
    }

    /// Makes the replica of a master take its place while both run, and waits until all nodes
    /// know. Returns the new master.
    ///
    /// # Errors
    ///
    /// If that does not come to pass.
    pub fn fail_over(&self, master: usize) -> Result<usize> {
        let replica = self.replica_of(master)?;
        // A replica that does not get the votes in time gives up.
        let mut asked: Option<Instant> = None;
        until("the replica as master", || {
            if is_master(&self.nodes[replica])? {
                return Ok((!is_master(&self.nodes[master])?).then_some(()));
            }
            if asked.is_none_or(|asked| asked.elapsed() > VOTE) {
                self.nodes[replica].cli(&["CLUSTER", "FAILOVER"])?;
                asked = Some(Instant::now());
            }
            Ok(None)
        })?;
        self.await_ok()?;
        Ok(replica)
    }

    /// Waits until the nodes have replaced the master `old` of a slot, after it was paused or
    /// killed. Returns the new master.
    ///
    /// # Errors
    ///
    /// If they do not.
    pub fn await_failover_from(&self, old: usize, slot: u16) -> Result<usize> {
        until("a new master", || {
            let new = self.master_of(slot)?;
            Ok((new != old).then_some(new))
        })
    }

    /// Moves a slot with its keys to another master, which then says so to everybody.
    ///
    /// # Errors
    ///
    /// If `to` is no master, or a node refuses.
    pub fn move_slot(&self, slot: u16, to: usize) -> Result<()> {
        let from = self.master_of(slot)?;
        ensure!(is_master(&self.nodes[to])?, "node {to} is no master");
        if from == to {
            return Ok(());
        }
        let number = slot.to_string();
        let set = |node: usize, how: &str, peer: &str| {
            self.nodes[node].cli(&["CLUSTER", "SETSLOT", &number, how, peer])
        };
        let id = |node: usize| self.nodes[node].cli(&["CLUSTER", "MYID"]);
        let (source, target) = (id(from)?, id(to)?);
        set(to, "IMPORTING", &source)?;
        set(from, "MIGRATING", &target)?;
        self.migrate_keys(&number, from, to)?;
        set(to, "NODE", &target)?;
        set(from, "NODE", &target)?;
        until("masters that agree about the slot", || {
            Ok((self.master_of(slot)? == to).then_some(()))
        })
    }

    fn migrate_keys(&self, slot: &str, from: usize, to: usize) -> Result<()> {
        let from = &self.nodes[from];
        let port = self.nodes[to].port().to_string();
        loop {
            let keys = from.cli(&["CLUSTER", "GETKEYSINSLOT", slot, "100"])?;
            if keys.is_empty() {
                return Ok(());
            }
            let mut migrate = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"];
            migrate.extend(keys.lines());
            from.cli(&migrate)?;
        }
    }
}

fn is_master(node: &RedisServer) -> Result<bool> {
    Ok(node.cli(&["ROLE"])?.starts_with("master"))
}

/// The port of the master that has a slot, from the reply to `CLUSTER NODES`:
/// `ID HOST:PORT@BUS FLAGS MASTER PING PONG EPOCH LINK SLOTS…`.
fn owner(nodes: &str, slot: u16) -> Option<u16> {
    let has = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| text.parse::<u16>().ok();
        matches!((number(first), number(last)), (Some(first), Some(last)) if (first..=last).contains(&slot))
    };
    let line = nodes
        .lines()
        .find(|line| line.split(' ').skip(8).any(has))?;
    let address = line.split(' ').nth(1)?.split('@').next()?;
    address.rsplit_once(':')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_of_a_slot_is_read_from_the_list_of_nodes() {
        let nodes = "a 127.0.0.1:7001@17001 myself,master - 0 0 1 connected 0-99 200 [300->-b]\n\
                     b 127.0.0.1:7002@17002,host master - 0 0 2 connected 100-199\n\
                     c 127.0.0.1:7003@17003 slave b 0 0 2 connected";
        assert_eq!(owner(nodes, 0), Some(7001));
        assert_eq!(owner(nodes, 150), Some(7002));
        assert_eq!(owner(nodes, 200), Some(7001));
        assert_eq!(owner(nodes, 300), None);
    }
}
