//! The two sides of the take-over test: a holder to be killed, and waiters that say when they got
//! in.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use tokio::task::JoinSet;

use crate::options::Options;
use crate::peers::{Peer, Task};

/// How long who got in stays, so that a second one inside would be seen.
const STAY: Duration = Duration::from_millis(300);

/// Takes the lock, says so, and keeps it until the process is killed.
pub(crate) async fn hold<P: Peer>(options: &Options) -> Result<()> {
    let client = P::connect(options).await?;
    let mut task = client.task(&options.key).await?;
    task.lock().await?;
    println!("held");
    loop {
        tokio::time::sleep(options.ttl / 3).await;
        task.extend().await?;
    }
}

/// Lets all tasks of all clients wait and prints when each of them got in: nanoseconds since 1970.
pub(crate) async fn wait<P: Peer>(options: &Options) -> Result<()> {
    let mut waiters = JoinSet::new();
    for _ in 0..options.clients {
        let client = P::connect(options).await?;
        for _ in 0..options.tasks {
            let mut task = client.task(&options.key).await?;
            waiters.spawn(async move {
                task.lock().await?;
                let since = SystemTime::now().duration_since(UNIX_EPOCH)?;
                println!("{}", since.as_nanos());
                tokio::time::sleep(STAY).await;
                task.unlock().await
            });
        }
    }
    println!("waiting");
    while let Some(waiter) = waiters.join_next().await {
        waiter??;
    }
    Ok(())
}
