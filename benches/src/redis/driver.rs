//! The programs that run the workloads of `benches/peers/SPEC.md`.

use std::fs::read_to_string;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use lockkit_servers::redis::RedisServer;
use serde::Deserialize;

use super::census::Census;
use super::counters::Counters;
use crate::peer::Peer;

/// Where the programs are.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Drivers {
    /// The program with the Rust peers.
    #[arg(long, value_name = "FILE")]
    rust: PathBuf,
    /// The class path of the Java peers.
    #[arg(long, value_name = "PATH")]
    java: Option<String>,
    /// The program with the Go peers.
    #[arg(long, value_name = "FILE")]
    go: Option<PathBuf>,
}

/// Who takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Floor,
    Lockkit,
    LockkitFair,
    Rslock,
    Rlock,
    Redisson,
    RedissonFair,
    Redsync,
}

impl Subject {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Floor => "bare redis",
            Self::Lockkit => "lockkit",
            Self::LockkitFair => "lockkit, fair",
            Self::Rslock => "rslock",
            Self::Rlock => "rlock",
            Self::Redisson => "Redisson",
            Self::RedissonFair => "Redisson, fair",
            Self::Redsync => "redsync",
        }
    }

    /// The name with the version of the library.
    pub(super) fn name_with(self, version: &str) -> String {
        format!("{} {}", self.name(), version.trim_start_matches('v'))
    }

    /// The name that the driver knows.
    const fn peer(self) -> &'static str {
        match self {
            Self::Floor => "redis-floor",
            Self::Lockkit | Self::LockkitFair => "lockkit",
            Self::Rslock => "rslock",
            Self::Rlock => "rlock",
            Self::Redisson | Self::RedissonFair => "redisson",
            Self::Redsync => "redsync",
        }
    }

    pub(super) const fn is_lockkit(self) -> bool {
        matches!(self, Self::Lockkit | Self::LockkitFair)
    }

    const fn is_fair(self) -> bool {
        matches!(self, Self::LockkitFair | Self::RedissonFair)
    }
}

/// What a driver is told to do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) workload: &'static str,
    pub(super) clients: usize,
    pub(super) tasks: usize,
    pub(super) seconds: u64,
}

/// The line of JSON that a driver prints. Latencies are in microseconds.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Said {
    pub(super) version: String,
    pub(super) ops: f64,
    pub(super) ops_s: f64,
    pub(super) mean_us: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    pub(super) max_us: f64,
    pub(super) violations: f64,
    pub(super) errors: f64,
    pub(super) jain: f64,
    /// How often the unluckiest waiter was overtaken.
    pub(super) overtaken: Option<f64>,
}

/// Where counting begins, and where it ends.
const MARKS: usize = 2;

/// One run: what was done, and what it took in all.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) said: Said,
    pub(super) spent: Counters,
    pub(super) client_cpu_us: f64,
}

impl Drivers {
    /// Whether there is a driver for this one.
    pub(super) fn has(&self, subject: Subject) -> bool {
        match subject {
            Subject::Redisson | Subject::RedissonFair => self.java.is_some(),
            Subject::Redsync => self.go.is_some(),
            _ => true,
        }
    }

    /// Runs one workload and reads the servers' counters around the counted seconds. All servers
    /// are given to the driver; `counted` are those that can be asked.
    pub(super) fn run(
        &self,
        subject: Subject,
        work: Work,
        servers: &[&RedisServer],
        counted: &[&RedisServer],
    ) -> Result<Outcome> {
        let mut command = self.command(subject, work, servers)?;
        let driver = Peer::spawn(command.stderr(Stdio::piped()))?;
        let mut marks = Vec::new();
        let said = hear(&driver, MARKS, || {
            marks.push((Counters::read(counted)?, cpu_us(driver.pid())?));
            Ok(())
        })?;
        let [(before, cpu_before), (after, cpu_after)] = marks[..] else {
            anyhow::bail!("{} marked no window", subject.name());
        };
        Ok(Outcome {
            said,
            spent: after - before,
            client_cpu_us: cpu_after - cpu_before,
        })
    }

    /// Runs one workload for the number of client requests of an operation.
    pub(super) fn census(&self, subject: Subject, work: Work, server: &RedisServer) -> Result<f64> {
        let mut command = self.command(subject, work, &[server])?;
        let driver = Peer::spawn(command.stderr(Stdio::piped()))?;
        let (mut census, mut requests) = (None, 0.0);
        let said = hear(&driver, MARKS, || {
            match census.take() {
                None => census = Some(Census::start(server)?),
                Some(census) => requests = Census::finish(census)?,
            }
            Ok(())
        })?;
        Ok(requests / said.ops)
    }

    /// The command that runs one workload on these servers.
    pub(super) fn command(
        &self,
        subject: Subject,
        work: Work,
        servers: &[&RedisServer],
    ) -> Result<Command> {
        let mut command = match subject {
            Subject::Redisson | Subject::RedissonFair => {
                let mut java = Command::new("java");
                let path = self.java.as_ref().context("the Java peers are not built")?;
                java.args(["-cp", path, "lockkit.measure.Driver"]);
                java
            }
            Subject::Redsync => {
                Command::new(self.go.as_ref().context("the Go peers are not built")?)
            }
            _ => Command::new(&self.rust),
        };
        let workload = match work.workload {
            "contend" if subject.is_fair() => "fair",
            other => other,
        };
        let addresses: Vec<_> = servers.iter().map(|server| server.address()).collect();
        command
            .args(["--peer", subject.peer(), "--workload", workload])
            .args(["--server", &addresses.join(",")])
            .args(["--clients", &work.clients.to_string()])
            .args(["--tasks", &work.tasks.to_string()])
            .args(["--seconds", &work.seconds.to_string()])
            .args(["--key", "bench"]);
        Ok(command)
    }
}

/// Listens until the line of JSON has come, and as many marks, which come another way: `mark` is
/// called where counting begins and where it ends.
pub(super) fn hear(
    driver: &Peer,
    mut marks: usize,
    mut mark: impl FnMut() -> Result<()>,
) -> Result<Said> {
    let mut said = None;
    loop {
        let line = driver.hear()?;
        if line.starts_with("measure: ") {
            mark()?;
            marks = marks.saturating_sub(1);
        } else if line.starts_with('{') {
            said = Some(serde_json::from_str(&line)?);
        } else {
            eprintln!("{line}");
        }
        if marks == 0
            && let Some(said) = said
        {
            return Ok(said);
        }
    }
}

/// The CPU time that a process has used, in user and kernel mode.
fn cpu_us(pid: u32) -> Result<f64> {
    let stat = read_to_string(format!("/proc/{pid}/stat"))?;
    // Behind the name, which is in parentheses, utime and stime are the 12th and 13th field.
    let (_, fields) = stat.rsplit_once(')').context("malformed stat")?;
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks = ticks.map(str::parse::<u32>).sum::<Result<u32, _>>()?;
    let per_second = u32::try_from(rustix::param::clock_ticks_per_second())?;
    Ok(f64::from(ticks) * 1e6 / f64::from(per_second))
}
