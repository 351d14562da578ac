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
    +hello +auth +ping +info +client|setname +client|id \
    +eval +evalsha +script|load \
    +publish +subscribe +unsubscribe +spublish +ssubscribe +sunsubscribe \
    +get +set +del +exists +incr +pexpire +pttl +time \
    +hget +hset +hmget +hgetall +hdel +hexists +hlen +hincrby \
    +zadd +zrem +zscore +zcard +zrange +zrangebyscore +zrank \
    +sadd +srem +scard +sismember +smembers \
    +scan +role +wait +cluster|slots +cluster|shards +asking";
