//! Repeats one operation on many tasks for a while.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};

use crate::options::{Options, Workload};
use crate::peers::{Peer, Task};
use crate::records::{Operation, Record, Report};
use crate::witness::Witness;

const WARM_UP: Duration = Duration::from_secs(1);

/// What is counted.
#[derive(Clone, Copy, Debug)]
struct Window {
    begin: Instant,
    end: Instant,
}

/// Connects, warms up, counts, and prints the line of JSON.
pub(crate) async fn measure<P: Peer>(options: Options, version: &str) -> Result<()> {
    let mut clients = Vec::new();
    let mut tasks = Vec::new();
    for _ in 0..options.clients {
        let client = P::connect(&options).await?;
        for _ in 0..options.tasks {
            let key = match options.workload {
                Workload::Distinct => format!("{}-{}", options.key, tasks.len()),
                _ => options.key.clone(),
            };
            tasks.push(client.task(&key).await?);
        }
        clients.push(client);
    }
    let mut holder = None;
    if options.workload == Workload::Tryheld {
        let client = P::connect(&options).await?;
        let mut task = client.task(&options.key).await?;
        task.lock().await?;
        holder = Some((client, task));
        // Fails here, once, where the library has no such call.
        let _held: bool = tasks[0].try_lock().await?;
    }

    let witness = Arc::new(Witness::default());
    let window = Window::new(&options)?;
    let running: Vec<_> = tasks
        .into_iter()
        .map(|task| tokio::spawn(repeat(task, options.workload, Arc::clone(&witness), window)))
        .collect();
    for (moment, name) in [(window.begin, "begin"), (window.end, "end")] {
        tokio::time::sleep_until(moment.into()).await;
        // Whoever runs this reads the server's counters now.
        eprintln!("measure: {name}");
    }
    let mut records = Vec::new();
    for task in running {
        records.push(task.await?);
    }
    if let Some((_client, mut task)) = holder {
        task.unlock().await?;
    }
    let report = Report::new(&options, version, &witness, &records);
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

impl Window {
    fn new(options: &Options) -> Result<Self> {
        let warm_up = match options.begin {
            Some(nanos) => {
                let begin = UNIX_EPOCH + Duration::from_nanos(nanos);
                begin.duration_since(SystemTime::now())?
            }
            None => WARM_UP,
        };
        let begin = Instant::now() + warm_up;
        let end = begin + Duration::from_secs(options.seconds);
        Ok(Self { begin, end })
    }
}

async fn repeat<T: Task>(
    mut task: T,
    workload: Workload,
    witness: Arc<Witness>,
    window: Window,
) -> Record {
    let mut record = Record::default();
    loop {
        let asked = Instant::now();
        if asked >= window.end {
            return record;
        }
        match operate(&mut task, workload, &witness, &mut record).await {
            Ok(took) if asked + took > window.begin => {
                record.max = record.max.max(took);
                if asked + took < window.end {
                    record.operations.push(Operation { asked, took });
                }
            }
            Ok(_) => {}
            Err(error) => {
                record.errors += 1;
                if record.errors == 1 {
                    eprintln!("{error:#}");
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }
}

/// Does one operation and returns the latency that the workload asks for.
async fn operate<T: Task>(
    task: &mut T,
    workload: Workload,
    witness: &Witness,
    record: &mut Record,
) -> Result<Duration> {
    let start = Instant::now();
    if workload == Workload::Tryheld {
        if task.try_lock().await? {
            bail!("try-lock got a lock that is held");
        }
        return Ok(start.elapsed());
    }
    task.lock().await?;
    let waited = start.elapsed();
    if workload.is_contended() {
        witness.visit(task.fence());
        record.visits += 1;
        task.unlock().await?;
        return Ok(waited);
    }
    task.unlock().await?;
    Ok(start.elapsed())
}
