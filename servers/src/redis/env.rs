//! The environment variables in which tests find the servers that are there for all of them.
//!
//! `cargo xtask test` and `cargo xtask servers up redis` set them; see [`RedisSet`].
//!
//! [`RedisSet`]: super::RedisSet

/// One server: `redis://HOST:PORT`.
pub const SINGLE: &str = "LOCKKIT_TEST_REDIS";
/// Three sentinels of a master with a replica: `redis+sentinel://HOST:PORT,…/SERVICE`.
pub const SENTINEL: &str = "LOCKKIT_TEST_REDIS_SENTINEL";
/// A cluster of six nodes: `redis+cluster://HOST:PORT,…`.
pub const CLUSTER: &str = "LOCKKIT_TEST_REDIS_CLUSTER";
/// Five servers that know nothing of each other: `redlock://HOST:PORT,…`.
pub const REDLOCK: &str = "LOCKKIT_TEST_REDLOCK";
/// A server that speaks TLS only: `rediss://HOST:PORT?ca=PATH`.
pub const TLS: &str = "LOCKKIT_TEST_REDIS_TLS";
/// The certificate that the server of [`TLS`] is signed with, as a PEM file.
pub const CA: &str = "LOCKKIT_TEST_REDIS_CA";
/// A user who may do no more than [`acl::RULES`](super::acl::RULES):
/// `redis://USER:PASSWORD@HOST:PORT`.
pub const ACL: &str = "LOCKKIT_TEST_REDIS_ACL";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_containers_are_announced_by_the_same_names() {
        let announced = include_str!("../../../compose/environment");
        for name in [SINGLE, SENTINEL, CLUSTER, REDLOCK, TLS, CA, ACL] {
            assert!(announced.contains(&format!("export {name}=")), "{name}");
        }
    }
}
