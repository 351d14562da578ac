//! The storms as tests.

use std::fmt;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::{Arguments, Completion, Trial};
use lockkit_core::{DistributedLock, Locker};
use tokio::runtime::Builder;
use tokio::time::timeout;

use super::actor::Scene;
use super::judge::judge;
use super::plan::{PERMITS, SEGMENTS, Topic};
use super::pool::Pool;
use super::record::{Log, Record};
use super::{child, storm};
use crate::failure::ensure;
use crate::{Failure, Fixture, Harness, Need, Outcome};

/// Who makes a storm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crowd {
    /// So many tasks of this process, on eight clients.
    Tasks(u32),
    /// So many child processes, with four tasks each.
    Processes(u32),
}

/// How long a storm lasts, unless somebody says otherwise.
const LENGTH: Duration = Duration::from_secs(30);

/// How long everything may take to be free when a storm is over: holds of those that were killed
/// end with their leases.
const AFTERMATH: Duration = Duration::from_secs(30);

/// Lets a storm loose on each primitive: the `main` of a test with `harness = false`.
///
/// `new` makes the harness of one storm; its clock has to be the real one. Understands the command
/// line of `cargo test`, and serves as child process when it is started as one. A primitive that
/// the backend does not claim is reported as ignored.
pub fn main<H: Harness>(crowd: Crowd, new: impl Fn() -> H + Send + Sync + 'static) -> ExitCode {
    main_for(LENGTH, crowd, new)
}

/// The same with storms of another length: shorter where many programs have storms of one backend.
pub fn main_for<H: Harness>(
    length: Duration,
    crowd: Crowd,
    new: impl Fn() -> H + Send + Sync + 'static,
) -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(child::CHILD_ARGUMENT) {
        let harness = Arc::new(new());
        return child::main(move |url| {
            let harness = Arc::clone(&harness);
            async move { harness.backend_at(&url).await }
        });
    }
    let mut arguments = Arguments::from_args();
    // Processes need the cores more than tasks do.
    let at_once = match crowd {
        Crowd::Tasks(_) => Topic::ALL.len(),
        Crowd::Processes(_) => 3,
    };
    arguments.test_threads.get_or_insert(at_once);
    let new = Arc::new(new);
    let trials = Topic::ALL.map(|topic| {
        if !new().descriptor().supports(topic.primitive()) {
            return Trial::ignorable_test(topic.as_str(), move || {
                Ok(Completion::ignored_with(format!(
                    "no {}",
                    topic.primitive()
                )))
            })
            .with_ignored_flag(true);
        }
        let new = Arc::clone(&new);
        Trial::test(topic.as_str(), move || {
            run(length, crowd, topic, new()).map_err(Into::into)
        })
    });
    libtest_mimic::run(&arguments, trials.into()).exit_code()
}

fn from_environment(name: &str) -> Outcome<Option<u64>> {
    match std::env::var(name) {
        Ok(text) => Ok(Some(text.parse()?)),
        Err(_) => Ok(None),
    }
}

fn run(length: Duration, crowd: Crowd, topic: Topic, harness: impl Harness) -> Outcome {
    let seed = from_environment("LOCKKIT_MODEL_SEED")?.unwrap_or_else(rand::random);
    let seconds = from_environment("LOCKKIT_MODEL_SECONDS")?;
    let length = seconds.map_or(length, Duration::from_secs);
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let harness: Arc<dyn Harness> = Arc::new(harness);
    let fixture = Fixture::new(Arc::clone(&harness));
    let outcome = runtime.block_on(async {
        // Makes what is missing, before many do at once.
        fixture.client().await?;
        let began = harness.descriptor().clock.now();
        let scene = Scene {
            topic,
            log: Arc::new(Log::in_memory()),
            detached: Arc::new(Pool::in_memory()),
            began,
            ends: began + length,
        };
        let files = std::env::temp_dir().join(format!("lockkit-model-{}-{seed:x}", topic.as_str()));
        let (records, kills) = match crowd {
            Crowd::Tasks(tasks) => storm::tasks(&*harness, &scene, tasks, seed).await?,
            Crowd::Processes(processes) => {
                std::fs::create_dir_all(&files)?;
                child::processes(&*harness, &scene, processes, seed, &files).await?
            }
        };
        let wrong = judge(&records, Need::Fences.met_by(&*harness));
        let tally = Tally::of(&records, kills, wrong.len());
        println!("{}: seed {seed}: {tally}", topic.as_str());
        let shown: Vec<&str> = wrong.iter().take(20).map(String::as_str).collect();
        ensure!(
            wrong.is_empty(),
            "seed {seed}, records in {}:\n{}",
            files.display(),
            shown.join("\n")
        );
        ensure!(tally.grants > 0, "seed {seed}: nobody was given anything");
        if files.exists() {
            std::fs::remove_dir_all(&files)?;
        }
        fixture.crashed();
        let client = fixture.client().await?;
        aftermath(&client, topic).await?;
        fixture.finish().await
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    outcome.map_err(|failure| Failure::new(format!("seed {seed}: {failure}")))
}

/// Every name can be taken by whoever comes.
async fn aftermath(locker: &Locker, topic: Topic) -> Outcome {
    for number in 0..topic.names() {
        let name = topic.name(number);
        let lock: Box<dyn DistributedLock> = match topic {
            Topic::Mutex | Topic::MultiLock => Box::new(locker.mutex(name)),
            Topic::ReadWrite => Box::new(locker.read_write(name).write()),
            Topic::Semaphore => Box::new(locker.semaphore(name, PERMITS).permits(PERMITS)),
            Topic::Segmented => {
                for segment in 0..SEGMENTS {
                    let lock = locker.segmented(&name, SEGMENTS);
                    drop(in_time(lock.lock_segment(segment)).await?);
                }
                continue;
            }
            Topic::Latch => return Ok(()),
        };
        drop(in_time(lock.lock()).await?);
    }
    Ok(())
}

async fn in_time<T>(lock: impl Future<Output = lockkit_core::Result<T>>) -> Outcome<T> {
    let late = Failure::new(format!("not free {AFTERMATH:?} after the storm"));
    Ok(timeout(AFTERMATH, lock).await.map_err(|_| late)??)
}

/// How much happened.
struct Tally {
    operations: usize,
    dropped: usize,
    grants: usize,
    kills: usize,
    wrong: usize,
}

impl Tally {
    fn of(records: &[Record], kills: usize, wrong: usize) -> Self {
        let count = |of: fn(&Record) -> bool| records.iter().filter(|record| of(record)).count();
        Self {
            operations: count(|record| matches!(record, Record::Began)),
            dropped: count(|record| matches!(record, Record::Dropped)),
            grants: count(|record| {
                matches!(
                    record,
                    Record::Grant(_) | Record::Waited { passed: true, .. }
                )
            }),
            kills,
            wrong,
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            operations,
            dropped,
            grants,
            kills,
            wrong,
        } = self;
        write!(
            f,
            "{operations} operations, {grants} grants, {dropped} futures dropped, {kills} killed, \
             {wrong} violations"
        )
    }
}
