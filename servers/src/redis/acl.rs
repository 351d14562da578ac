//! A user with no more rights than locks need.

/// The name of the user.
pub const USER: &str = "lockkit";
/// The user's password.
pub const PASSWORD: &str = "only-for-tests";

/// What a client with the prefix `lk` must be allowed to do, as in
/// `ACL SETUSER lockkit on >PASSWORD …`: its own keys and channels, the commands of its scripts,
/// and those by which it connects. Other keys and channels, `KEYS`, `CONFIG` and `FLUSHALL` are
/// refused, also from inside a script.
pub const RULES: &str = "resetkeys resetchannels ~lk:* &lk:* -@all \
    +hello +auth +ping +info +client|setname +client|kill \
    +eval +evalsha +script|load +publish +time \
    +subscribe +unsubscribe +ssubscribe +sunsubscribe +spublish \
    +get +set +del +exists +incr +pexpire +pttl \
    +hget +hset +hmget +hgetall +hdel +hexists +hlen +hincrby +hvals +hrandfield \
    +zadd +zrem +zpopmin +zscore +zcard +zrange +zrangebyscore +zremrangebyrank \
    +sadd +scan +wait +asking +cluster|slots";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_in_the_containers_has_the_same_rights() {
        let users = include_str!("../../../compose/users.acl");
        let line = format!("user {USER} on >{PASSWORD} {RULES}");
        assert!(users.lines().any(|found| found == line), "make it\n{line}");
    }
}
