//! Renewing many holds.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use lockkit::{Locker, LockerOptions};
use lockkit_redis::Redis;
use redis::{Connection, FromRedisValue, Script};
use tokio::runtime::Builder;

use super::contest::Ring;
use super::server::{clear, connect};
use crate::report::Report;
use crate::watched::{Beats, Watched};

const WORKLOAD: &str = "renewing 10,000 holds";
const TOOK: (&str, &str) = ("10,000 renewed", "ms");
const LONGEST: (&str, &str) = ("longest call", "us");
const TTL: Duration = Duration::from_secs(6);
/// Whatever takes the server longer than this is looked at.
const SLOW: Duration = Duration::from_micros(20);

pub(super) fn measure(ring: &Ring, report: &mut Report) -> Result<()> {
    let count = report.pick(10_000, 500);
    clear(&ring.server)?;
    let one_by_one = one_by_one(&mut connect(&ring.server)?, count)?;
    clear(&ring.server)?;
    let mut observer = connect(&ring.server)?;
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let (ours, longest) = runtime.block_on(beats(&ring.server.url(), &mut observer, count))?;
    report.row(WORKLOAD, "bare redis, one by one", TOOK, &[one_by_one]);
    let took = report.row(WORKLOAD, "lockkit", TOOK, &ours);
    report.row(WORKLOAD, "lockkit", LONGEST, &[longest]);
    report.bar(WORKLOAD, TOOK, took, 30.0);
    report.bar(WORKLOAD, LONGEST, longest, 5_000.0);
    Ok(())
}

/// Milliseconds that lockkit takes for 10,000, once for each beat of the watchdog; and microseconds of
/// the call that kept the server busy for longest.
async fn beats(url: &str, observer: &mut Connection, count: usize) -> Result<(Vec<f64>, f64)> {
    let beats = Beats::default();
    let backend = Watched {
        backend: Redis::connect(url).await?,
        beats: beats.clone(),
    };
    let mut options = LockerOptions::default();
    options.ttl = TTL;
    options.max_holds = options.max_holds.max(count);
    let locker = Locker::with_options(backend, options)?;
    let mut guards = Vec::with_capacity(count);
    for i in 0..count {
        guards.push(locker.mutex(format!("orders/{i}")).lock().await?);
    }
    beats.take();
    watch_slow_calls(observer)?;
    // Longer than a lease: whoever was not renewed in it is lost.
    tokio::time::sleep(TTL * 3).await;
    let seen = beats.take();
    let longest = longest_call(observer)?;
    ensure!(!seen.is_empty(), "nothing was renewed");
    ensure!(
        guards.iter().all(lockkit::Guard::is_held),
        "a hold was lost"
    );
    let mut took = Vec::new();
    for beat in seen {
        let ids = f64::from(u32::try_from(beat.ids)?);
        took.push(beat.took.as_secs_f64() * 1e3 / ids * 10_000.0);
    }
    drop(guards);
    locker.close().await?;
    Ok((took, longest))
}

/// The same with the bare client: a script that checks the owner, and its answer, for each.
fn one_by_one(connection: &mut Connection, count: usize) -> Result<f64> {
    let renew = Script::new(
        "if redis.call('get', KEYS[1]) == ARGV[1] then \
         return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0",
    );
    let keys: Vec<String> = (0..count).map(|i| format!("orders/{i}")).collect();
    let millis = u32::try_from(TTL.as_millis())?;
    for key in &keys {
        redis::cmd("SET")
            .arg(key)
            .arg("owner")
            .arg("PX")
            .arg(millis)
            .exec(connection)?;
    }
    let started = Instant::now();
    for key in &keys {
        let renewed: bool = renew.key(key).arg("owner").arg(millis).invoke(connection)?;
        ensure!(renewed, "the hold was lost");
    }
    let each = started.elapsed() / u32::try_from(count)?;
    Ok(each.as_secs_f64() * 1e3 * 10_000.0)
}

/// Lets the server note every call that is not short.
fn watch_slow_calls(observer: &mut Connection) -> Result<()> {
    for (name, value) in [
        ("slowlog-log-slower-than", SLOW.as_micros().to_string()),
        ("slowlog-max-len", "100000".to_owned()),
    ] {
        redis::cmd("CONFIG")
            .arg("SET")
            .arg(name)
            .arg(value)
            .exec(observer)?;
    }
    Ok(redis::cmd("SLOWLOG").arg("RESET").exec(observer)?)
}

/// Microseconds of the longest call since then.
fn longest_call(observer: &mut Connection) -> Result<f64> {
    let calls: Vec<Vec<redis::Value>> = redis::cmd("SLOWLOG").arg("GET").arg(-1).query(observer)?;
    let mut longest = 0.0_f64;
    for call in calls {
        // An id, a moment, and how long it took.
        let took = call.into_iter().nth(2).unwrap_or(redis::Value::Int(0));
        longest = longest.max(f64::from_redis_value(took)?);
    }
    Ok(longest)
}
