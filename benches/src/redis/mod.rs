//! The suite `redis`: locks in a Redis server, beside the bare client and what people use today.

mod census;
mod contest;
mod contests;
mod counters;
mod driver;
mod kill;
mod processes;
mod redlock;
mod renewal;
mod server;

use anyhow::Result;
use lockkit_servers::redis::RedisServer;

pub(crate) use self::driver::Drivers;

use self::contest::Ring;
use crate::report::Report;

/// Runs the whole suite.
pub(crate) fn measure(report: &mut Report, drivers: Drivers, rounds: usize) -> Result<()> {
    let ring = Ring {
        drivers,
        server: RedisServer::start()?,
        rounds,
        seconds: report.pick(3, 1),
    };
    contests::measure(&ring, report);
    let parts: [(&str, Part); 4] = [
        ("many processes", processes::measure),
        ("renewing", renewal::measure),
        ("kill -9", kill::measure),
        ("RedLock", redlock::measure),
    ];
    for (name, part) in parts {
        // The figures so far are worth more than a run that ends here.
        if let Err(error) = part(&ring, report) {
            eprintln!("{name}: {error:#}");
            report.bar(name, ("failed", ""), 1.0, 0.0);
        }
    }
    Ok(())
}

type Part = fn(&Ring, &mut Report) -> Result<()>;
