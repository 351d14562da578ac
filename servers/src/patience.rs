//! Waiting for what a server does in its own time.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

/// How long any of this may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Asks until the answer is something. An error counts as "not yet", and the last one is told if
/// time runs out.
pub(crate) fn until<T>(what: &str, mut ask: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let started = Instant::now();
    loop {
        let answer = ask();
        if let Ok(Some(found)) = answer {
            return Ok(found);
        }
        if started.elapsed() > PATIENCE {
            let seconds = PATIENCE.as_secs();
            let error = answer
                .err()
                .unwrap_or_else(|| anyhow!("it answers: not yet"));
            return Err(error.context(format!("{what}: not within {seconds} s")));
        }
        thread::sleep(Duration::from_millis(25));
    }
}
