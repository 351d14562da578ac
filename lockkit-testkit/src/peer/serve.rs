//! The child's side: orders on standard input, one answer each on standard output.

use std::io::Write;
use std::process::ExitCode;

use lockkit_core::{Backend, Locker, Result};
use tokio::io::{AsyncBufReadExt, BufReader};

use super::orders::Orders;
use crate::{Failure, Outcome};

/// The `main` of a child process, for a [`peer`](crate::Harness::peer) of your own.
///
/// The url is its last argument.
///
/// # Examples
///
/// ```no_run
/// use lockkit_core::Memory;
///
/// fn main() -> std::process::ExitCode {
///     lockkit_testkit::peer_main(|_url| async { Ok(Box::new(Memory::new()) as _) })
/// }
/// ```
pub fn peer_main<F>(connect: impl Fn(String) -> F) -> ExitCode
where
    F: Future<Output = Result<Box<dyn Backend>>>,
{
    serve(connect)
}

/// The same, to be called by [`main`](crate::main).
pub(crate) fn serve<F>(connect: impl Fn(String) -> F) -> ExitCode
where
    F: Future<Output = Result<Box<dyn Backend>>>,
{
    let run = || -> Outcome {
        let url = std::env::args().next_back().unwrap_or_default();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let locker = Locker::new(crate::Wire::new(connect(url).await?.into()))?;
            obey(locker).await
        })
    };
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // Whoever reads the pipe may be gone already.
            let _ = say(&format!("error {failure}"));
            ExitCode::FAILURE
        }
    }
}

async fn obey(locker: Locker) -> Outcome {
    // Standard input is read on a thread of tokio's, which outlives a kill by nothing.
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut orders = Orders::new(locker);
    say("ready")?;
    while let Some(line) = lines.next_line().await? {
        match line.as_str() {
            "exit" => std::process::exit(0),
            "close" => {
                orders.close().await?;
                say("closed")?;
                // Not by returning: the thread that reads standard input would be waited for.
                std::process::exit(0);
            }
            order => match orders.carry_out(order).await {
                Ok(answer) => say(&answer)?,
                Err(failure) => say(&format!("error {failure}"))?,
            },
        }
    }
    Err(Failure::new("nobody gives orders any more"))
}

fn say(line: &str) -> Outcome {
    let mut out = std::io::stdout().lock();
    // One write, so that a line is never cut by a kill.
    out.write_all(format!("{}\n", line.replace('\n', " ")).as_bytes())?;
    Ok(out.flush()?)
}
