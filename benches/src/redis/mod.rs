//! The suite `redis`: locks in a Redis server, beside the bare client and what people use today.

mod census;
mod contest;
mod contests;
mod counters;
mod driver;
mod kill;
mod processes;
mod redlock;
mod server;

use anyhow::Result;

pub(crate) use self::driver::Drivers;

use self::contest::Ring;
use self::server::Server;
use crate::report::Report;

/// Runs the whole suite.
pub(crate) fn measure(report: &mut Report, drivers: Drivers, rounds: usize) -> Result<()> {
    let ring = Ring {
        drivers,
        server: Server::start()?,
        rounds,
        seconds: report.pick(3, 1),
    };
    contests::measure(&ring, report)?;
    processes::measure(&ring, report)?;
    kill::measure(&ring, report)?;
    redlock::measure(&ring, report)
}
