//! A storm of child processes.

use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use lockkit_core::{Backend, Instant};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use super::actor::{Actor, Part, Scene};
use super::plan::{Topic, lease};
use super::pool::Pool;
use super::record::{Log, Record, read};
use super::storm::{client, trouble};
use crate::failure::ensure;
use crate::{Failure, Harness, Outcome, Wire};

/// The first argument of a child process.
pub(super) const CHILD_ARGUMENT: &str = "lockkit-testkit-model";

/// How many actors a process has.
const ACTORS: u32 = 4;

/// The directory of what is detached, beside the files of the children.
const POOL: &str = "detached";

/// How long a child may take to end after the storm.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a child is told on its command line.
struct Orders {
    url: String,
    topic: Topic,
    file: PathBuf,
    began: Instant,
    ends: Instant,
    slot: u32,
    slots: u32,
    incarnation: u32,
    seed: u64,
}

/// Lets `processes` processes act until the end, kills one after the other, and stops some for
/// longer than a lease. What they wrote, and how many were killed.
pub(super) async fn processes(
    harness: &dyn Harness,
    scene: &Scene,
    processes: u32,
    seed: u64,
    files: &Path,
) -> Outcome<(Vec<Record>, usize)> {
    let url = harness
        .url()
        .ok_or_else(|| Failure::new("the harness has no url"))?;
    let program = harness.peer()?;
    std::fs::create_dir_all(files.join(POOL))?;
    let mut rng = StdRng::seed_from_u64(seed);
    let mut written = Vec::new();
    let mut start = |slot: u32, incarnation: u32| -> Outcome<Child> {
        let file = files.join(format!("{slot}-{incarnation}"));
        written.push(file.clone());
        let child = Command::new(&program)
            .arg(CHILD_ARGUMENT)
            .args([url.as_str(), scene.topic.as_str()])
            .arg(file)
            .args([scene.began, scene.ends].map(|at| at.as_nanos().to_string()))
            .args([slot, processes, incarnation].map(|number| number.to_string()))
            .arg(seed.to_string())
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        Ok(child)
    };
    let mut children = Vec::new();
    for slot in 0..processes {
        children.push(start(slot, 0)?);
    }
    let clock = harness.descriptor().clock;
    let mut kills = 0;
    loop {
        sleep(Duration::from_millis(rng.random_range(300..1_500))).await;
        if clock.now() >= scene.ends {
            break;
        }
        let slot = rng.random_range(0..processes);
        let child = &mut children[slot as usize];
        if rng.random_range(0..5) == 0 {
            signal(child, Signal::STOP)?;
            sleep(lease(harness.descriptor()) * 2).await;
            signal(child, Signal::CONT)?;
        } else {
            child.kill().await?;
            kills += 1;
            *child = start(slot, u32::try_from(kills)?)?;
        }
    }
    for mut child in children {
        let ended = timeout(PATIENCE, child.wait()).await;
        let status = ended.map_err(|_| Failure::new("a child has not ended"))??;
        ensure!(status.success(), "a child ended with {status}");
    }
    let mut records = Vec::new();
    for file in written.iter().filter(|file| file.exists()) {
        records.extend(read(file)?);
    }
    Ok((records, kills))
}

fn signal(child: &Child, signal: Signal) -> Outcome {
    let id = child.id().and_then(|id| i32::try_from(id).ok());
    let pid = id.and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| Failure::new("the child has ended"))?;
    Ok(kill_process(pid, signal)?)
}

/// The `main` of a child process.
pub(super) fn main<F>(connect: impl Fn(String) -> F) -> ExitCode
where
    F: Future<Output = lockkit_core::Result<Box<dyn Backend>>>,
{
    let run = || -> Outcome {
        let orders = Orders::read()?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        runtime.block_on(act(orders, connect))
    };
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

impl Orders {
    fn pool(&self) -> PathBuf {
        self.file.with_file_name(POOL)
    }

    fn read() -> Outcome<Self> {
        let mut words = std::env::args().skip(2);
        let mut word = || words.next().ok_or_else(|| Failure::new("too few orders"));
        let (url, topic) = (word()?, word()?);
        let topic = Topic::parse(&topic).ok_or_else(|| Failure::new("no such primitive"))?;
        Ok(Self {
            url,
            topic,
            file: word()?.into(),
            began: Instant::from_nanos(word()?.parse()?),
            ends: Instant::from_nanos(word()?.parse()?),
            slot: word()?.parse()?,
            slots: word()?.parse()?,
            incarnation: word()?.parse()?,
            seed: word()?.parse()?,
        })
    }
}

/// Connects; on a machine that is busy with many processes that may take several tries.
async fn connected<F>(url: &str, connect: impl Fn(String) -> F) -> Outcome<Box<dyn Backend>>
where
    F: Future<Output = lockkit_core::Result<Box<dyn Backend>>>,
{
    let mut tries = 0;
    loop {
        match connect(url.to_owned()).await {
            Err(error) if error.is_retryable() && tries < 20 => tries += 1,
            outcome => return Ok(outcome?),
        }
        sleep(Duration::from_millis(200)).await;
    }
}

async fn act<F>(orders: Orders, connect: impl Fn(String) -> F) -> Outcome
where
    F: Future<Output = lockkit_core::Result<Box<dyn Backend>>>,
{
    let wire = Wire::new(connected(&orders.url, connect).await?.into());
    let descriptor = wire.descriptor().clone();
    let locker = client(&wire, &descriptor)?;
    let scene = Scene {
        topic: orders.topic,
        log: Arc::new(Log::to(&orders.file)?),
        detached: Arc::new(Pool::Shared(orders.pool())),
        began: orders.began,
        ends: orders.ends,
    };
    let mut actors = tokio::task::JoinSet::new();
    for actor in 0..ACTORS {
        let part = Part {
            slot: orders.slot * ACTORS + actor,
            incarnation: orders.incarnation,
            slots: orders.slots * ACTORS,
            seed: orders.seed,
        };
        actors.spawn(Actor::new(scene.clone(), part, locker.clone()).run());
    }
    let seed = orders.seed ^ u64::from(orders.slot) ^ u64::from(orders.incarnation) << 32;
    let mut rng = StdRng::seed_from_u64(seed);
    let ended = async { while actors.join_next().await.is_some() {} };
    let troubles = async {
        loop {
            sleep(Duration::from_millis(rng.random_range(50..500))).await;
            trouble(&wire, &mut rng);
        }
    };
    tokio::select! {
        () = ended => {}
        () = troubles => {}
    }
    wire.set(crate::Fault::None);
    Ok(locker.close().await?)
}
