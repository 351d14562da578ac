//! Whether the uncontended path spawns anything.

use anyhow::Result;
use lockkit::{Locker, Memory};
use tokio::runtime::Handle;

use crate::guard::unlock;
use crate::report::Report;

const WORKLOAD: &str = "spawn";

/// Counts live tasks after every step, on a runtime of one thread, where a task that was spawned
/// cannot have run and ended before it is counted.
pub(super) fn measure(report: &mut Report) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let pairs = report.pick(10_000, 1_000);
    let most = runtime.block_on(async {
        let locker = Locker::new(Memory::new())?;
        let mutex = locker.mutex("spawn");
        unlock(mutex.lock().await?).await?;
        let alive = || {
            f64::from(
                u32::try_from(Handle::current().metrics().num_alive_tasks()).unwrap_or(u32::MAX),
            )
        };
        let before = alive();
        let mut most: f64 = 0.0;
        for _ in 0..pairs {
            let guard = mutex.lock().await?;
            most = most.max(alive() - before);
            unlock(guard).await?;
            most = most.max(alive() - before);
        }
        locker.close().await?;
        anyhow::Ok(most)
    })?;
    report.row(WORKLOAD, "lockkit", ("tasks spawned", "tasks"), &[most]);
    report.bar(
        WORKLOAD,
        ("tasks spawned by lock + unlock", "tasks"),
        most,
        0.0,
    );
    Ok(())
}
