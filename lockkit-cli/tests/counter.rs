//! Sixteen processes increment a counter in a file under `lockkit run`, while one holder after
//! another is killed.
//!
//! The counter is not atomic: an increment reads it, dawdles, and writes it back, so that two of
//! them at once lose one. Each record names the writer's fencing token, and the journal names the
//! record that each writer had read. Following these names from the last record back to the start
//! gives exactly the increments that took effect, in order, whoever was killed in between.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

const WORKERS: usize = 16;
const INCREMENTS: usize = 500;
const BETWEEN_KILLS: Duration = Duration::from_millis(100);

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    if args.next().as_deref() == Some("increment") {
        let worker = args.next().unwrap();
        increment(&worker).unwrap();
        return ExitCode::SUCCESS;
    }
    let trial = Trial::test("every_increment_that_reported_success_counts", counter);
    libtest_mimic::run(&Arguments::from_args(), vec![trial]).exit_code()
}

/// What CMD does, in the directory it was started in.
fn increment(worker: &str) -> std::io::Result<()> {
    let fence = std::env::var("LOCKKIT_FENCING_TOKEN").map_err(std::io::Error::other)?;
    std::fs::write("holder", format!("{worker} {}", std::process::id()))?;
    let mut file = OpenOptions::new().read(true).write(true).open("counter")?;
    let mut record = String::new();
    file.read_to_string(&mut record)?;
    let Record { value, writer } = Record::parse(&record);
    let mut journal = OpenOptions::new().append(true).open("journal")?;
    journal.write_all(format!("{fence} {value} {writer}\n").as_bytes())?;
    // Long enough for a second holder to read the same, or for the killer to strike.
    std::thread::sleep(Duration::from_millis(1));
    file.rewind()?;
    file.write_all(format!("{:020} {fence:>020}\n", value + 1).as_bytes())
}

/// The counter, and the fencing token of who wrote it.
struct Record {
    value: u64,
    writer: u64,
}

impl Record {
    fn parse(text: &str) -> Self {
        let mut numbers = text
            .split_whitespace()
            .map(|number| number.parse().unwrap());
        Self {
            value: numbers.next().unwrap_or(0),
            writer: numbers.next().unwrap_or(0),
        }
    }
}

/// The `lockkit` of each worker, if one runs. Not waited for while it is in here, so that its
/// process id is its own.
type Processes = [Mutex<Option<Child>>; WORKERS];

fn counter() -> Result<(), Failed> {
    let directory = lockkit_servers::scratch("lockkit-counter-")?;
    let path = directory.path();
    File::create(path.join("counter"))?;
    File::create(path.join("journal"))?;
    let processes: Processes = Default::default();
    let (done, killed) = (AtomicBool::new(false), AtomicU32::new(0));
    let started = Instant::now();

    let mut succeeded = Vec::new();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let process = &processes[worker];
                scope.spawn(move || work(path, worker, process))
            })
            .collect();
        let killer = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                std::thread::sleep(BETWEEN_KILLS);
                let lockkit_itself = killed.load(Ordering::Relaxed) % 4 != 3;
                if kill_holder(path, &processes, lockkit_itself).is_some() {
                    killed.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        let ends: Vec<_> = workers
            .into_iter()
            .map(std::thread::ScopedJoinHandle::join)
            .collect();
        done.store(true, Ordering::Relaxed);
        killer.join().unwrap();
        for end in ends {
            succeeded.extend(end.unwrap());
        }
    });

    let killed = killed.into_inner();
    eprintln!(
        "{} increments, {killed} kills, {:.1?}",
        succeeded.len(),
        started.elapsed()
    );
    assert_eq!(succeeded.len(), WORKERS * INCREMENTS);
    assert!(killed > 20, "{killed} kills prove little");
    check(path, &succeeded);
    let listed = lockkit(path, &["ls", "--format", "json"]).output()?;
    assert_eq!(String::from_utf8_lossy(&listed.stdout), "[]\n");
    Ok(())
}

fn lockkit(path: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("lockkit"));
    let url = format!("sqlite:{}", path.join("locks.db").display());
    command
        .args(args)
        .env("LOCKKIT_URL", url)
        .current_dir(path)
        .stdin(Stdio::null());
    command
}

/// Increments until enough of them reported success; returns their fencing tokens.
fn work(path: &Path, worker: usize, process: &Mutex<Option<Child>>) -> Vec<u64> {
    let this = std::env::current_exe().unwrap();
    let worker = worker.to_string();
    let mut succeeded = Vec::with_capacity(INCREMENTS);
    while succeeded.len() < INCREMENTS {
        let events = path.join(format!("events-{worker}"));
        let args = [
            "run",
            "--format",
            "json",
            "counter",
            "--",
            this.to_str().unwrap(),
            "increment",
            &worker,
        ];
        let child = lockkit(path, &args)
            .stderr(File::create(&events).unwrap())
            .spawn()
            .unwrap();
        let pid = Pid::from_child(&child);
        *process.lock().unwrap() = Some(child);
        wait_without_reaping(pid);
        let status = process.lock().unwrap().take().unwrap().wait().unwrap();
        let said = std::fs::read_to_string(&events).unwrap();
        if status.success() {
            let acquired: serde_json::Value =
                serde_json::from_str(said.lines().next().unwrap()).unwrap();
            succeeded.push(acquired["fence"].as_u64().unwrap());
        } else {
            // Killed itself, or its CMD was; nothing else may go wrong.
            let by_killer = status.signal() == Some(9) || status.code() == Some(137);
            assert!(by_killer, "{status}: {said}");
        }
    }
    succeeded
}

fn wait_without_reaping(pid: Pid) {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    waitid(
        WaitId::Pid(pid),
        WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
    )
    .unwrap();
}

/// Kills whoever holds the lock now: its `lockkit`, or the CMD of it.
fn kill_holder(path: &Path, processes: &Processes, lockkit_itself: bool) -> Option<()> {
    let holder = std::fs::read_to_string(path.join("holder")).ok()?;
    let (worker, cmd) = holder.split_once(' ')?;
    let mut process = processes[worker.parse::<usize>().ok()?].lock().unwrap();
    let process = process.as_mut()?;
    if lockkit_itself {
        return process.kill().ok();
    }
    // The id of CMD may be somebody else's by now, unless its parent is still ours.
    let cmd = Pid::from_raw(cmd.parse().ok()?)?;
    let cmd_itself = pidfd_open(cmd, PidfdFlags::empty()).ok()?;
    let stat = std::fs::read_to_string(format!("/proc/{cmd}/stat")).ok()?;
    let parent = stat.rsplit(") ").next()?.split(' ').nth(1)?;
    if parent != process.id().to_string() {
        return None;
    }
    pidfd_send_signal(cmd_itself, Signal::KILL).ok()
}

/// Checks the counter, the journal and what was reported against each other.
fn check(path: &Path, succeeded: &[u64]) {
    let journal = std::fs::read_to_string(path.join("journal")).unwrap();
    let mut read_by = BTreeMap::new();
    let mut last = 0;
    for line in journal.lines() {
        let (fence, read) = line.split_once(' ').unwrap();
        let fence: u64 = fence.parse().unwrap();
        assert!(fence > last, "fence {fence} after {last}");
        last = fence;
        read_by.insert(fence, Record::parse(read));
    }
    let mut counted = HashSet::new();
    let mut record = Record::parse(&std::fs::read_to_string(path.join("counter")).unwrap());
    let total = record.value;
    while record.value > 0 {
        assert!(
            counted.insert(record.writer),
            "fence {} counted twice",
            record.writer
        );
        let Record { value, writer } = read_by[&record.writer];
        assert_eq!(
            value + 1,
            record.value,
            "written by fence {}",
            record.writer
        );
        assert!(writer < record.writer);
        record = Record { value, writer };
    }
    assert_eq!(total, counted.len() as u64);
    for fence in succeeded {
        assert!(
            counted.contains(fence),
            "fence {fence} reported success and does not count"
        );
    }
    let distinct: HashSet<_> = succeeded.iter().collect();
    assert_eq!(
        distinct.len(),
        succeeded.len(),
        "two increments with one fence"
    );
    eprintln!(
        "the counter is {total}: {} beyond those reported",
        total - succeeded.len() as u64
    );
}
