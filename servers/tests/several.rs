//! Several Redis servers together.

use lockkit_servers::redis::{Cluster, Independent, RedisSet, Sentinels, env};

#[test]
fn sentinels_replace_a_master_on_demand_and_when_it_is_paused() {
    let all = Sentinels::start().unwrap();
    assert_eq!(all.master().unwrap(), 0);
    all.fail_over().unwrap();
    assert_eq!(all.master().unwrap(), 1);

    all.servers()[1].pause().unwrap();
    all.await_failover_from(1).unwrap();
    all.servers()[1].resume().unwrap();
    assert_eq!(all.master().unwrap(), 0);
}

#[test]
fn a_cluster_moves_slots_with_their_keys_and_replaces_masters() {
    let mut cluster = Cluster::start().unwrap();
    let slot = cluster.slot_of("key").unwrap();
    let master = cluster.master_of(slot).unwrap();
    let other = (0..3).find(|node| *node != master).unwrap();
    cluster.nodes()[master]
        .cli(&["SET", "key", "value"])
        .unwrap();

    cluster.move_slot(slot, other).unwrap();
    assert_eq!(cluster.master_of(slot).unwrap(), other);
    let moved = cluster.nodes()[other].cli(&["GET", "key"]).unwrap();
    assert_eq!(moved, "value");

    let promoted = cluster.fail_over(other).unwrap();
    assert_eq!(cluster.master_of(slot).unwrap(), promoted);
    assert_eq!(cluster.replica_of(promoted).unwrap(), other);

    cluster.nodes_mut()[promoted].kill().unwrap();
    let again = cluster.await_failover_from(promoted, slot).unwrap();
    assert_eq!(again, other);
    cluster.nodes_mut()[promoted].restart().unwrap();
    cluster.await_ok().unwrap();

    cluster.nodes()[again].pause().unwrap();
    let last = cluster.await_failover_from(again, slot).unwrap();
    assert_eq!(last, promoted);
    cluster.nodes()[again].resume().unwrap();
    cluster.await_ok().unwrap();
}

#[test]
fn independent_servers_keep_what_they_have_confirmed() {
    let mut all = Independent::start(3).unwrap();
    for server in all.servers_mut() {
        server.cli(&["SET", "key", "value"]).unwrap();
        server.kill().unwrap();
        server.restart().unwrap();
        assert_eq!(server.cli(&["GET", "key"]).unwrap(), "value");
    }
    assert_eq!(all.url().matches("127.0.0.1").count(), 3);
}

#[test]
fn the_set_has_one_of_everything() {
    let set = RedisSet::start().unwrap();
    let variables = set.variables();
    let names: Vec<_> = variables.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        names,
        [
            env::SINGLE,
            env::SENTINEL,
            env::CLUSTER,
            env::REDLOCK,
            env::TLS,
            env::CA,
            env::ACL
        ]
    );
    assert_eq!(set.running().len(), 1 + 5 + 6 + 5 + 2);
}
