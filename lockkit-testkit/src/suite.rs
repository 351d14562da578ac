//! Running cases.

use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use libtest_mimic::{Arguments, Completion, Trial};
use tokio::runtime::Builder;

use crate::peer::{PEER_ARGUMENT, serve};
use crate::{Case, Failure, Fixture, Harness, Outcome, Time, cases};

/// No case takes longer than this on its own clock.
const CASE_LIMIT: Duration = Duration::from_secs(240);
/// Nor in earnest: a case that spins would stop the virtual clock.
const WALL_LIMIT: Duration = Duration::from_secs(300);
/// Cases mostly wait, so more of them run at a time than there are cores.
const THREADS: usize = 8;

/// Runs the whole suite on a backend: the `main` of a test with `harness = false`.
///
/// `new` makes the harness of one case. Understands the command line of `cargo test`, and serves
/// as child process when it is started as one. A case that needs what the backend does not claim
/// is reported as ignored, with the missing thing as its kind.
pub fn main<H: Harness>(new: impl Fn() -> H + Send + Sync + 'static) -> ExitCode {
    main_with(new, cases())
}

/// The same with a choice of cases, which may be your own.
pub fn main_with<H: Harness>(
    new: impl Fn() -> H + Send + Sync + 'static,
    cases: Vec<Case>,
) -> ExitCode {
    let mut args = std::env::args().skip(1);
    if args.next().as_deref() == Some(PEER_ARGUMENT) {
        let harness = Arc::new(new());
        return serve(move |url| {
            let harness = Arc::clone(&harness);
            async move { harness.backend_at(&url).await }
        });
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(THREADS);
    libtest_mimic::run(&arguments, trials(new, cases)).exit_code()
}

/// The cases as trials, to run beside others in a test program of your own.
pub fn trials<H: Harness>(
    new: impl Fn() -> H + Send + Sync + 'static,
    cases: Vec<Case>,
) -> Vec<Trial> {
    let new = Arc::new(new);
    let sample = new();
    let trial = |case: Case| {
        if let Some(need) = case.missing(&sample) {
            let reason = need.absence();
            let ignored = move || Ok(Completion::ignored_with(reason));
            return Trial::ignorable_test(case.title(), ignored)
                .with_kind(reason)
                .with_ignored_flag(true);
        }
        let new = Arc::clone(&new);
        Trial::test(case.title(), move || run(case, new()).map_err(Into::into))
    };
    cases.into_iter().map(trial).collect()
}

/// Runs one case on a fresh service: on a runtime of its own, within a limit of time, and with the
/// census at the end.
///
/// # Errors
///
/// What the case, its clean-up or the census has to complain about.
///
/// # Panics
///
/// If the case panics.
pub fn run(case: Case, harness: impl Harness) -> Outcome {
    let (done, outcome) = mpsc::channel();
    let runner = thread::Builder::new().name(case.title()).spawn(move || {
        let outcome = run_here(case, Arc::new(harness));
        // Nobody listens once the limit has passed.
        let _ = done.send(outcome);
    })?;
    match outcome.recv_timeout(WALL_LIMIT) {
        Ok(outcome) => outcome,
        Err(mpsc::RecvTimeoutError::Timeout) => Err(Failure::new(format!(
            "not done after {WALL_LIMIT:?} of real time; does it spin?"
        ))),
        Err(mpsc::RecvTimeoutError::Disconnected) => match runner.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => Err(Failure::new("ended without an outcome")),
        },
    }
}

fn run_here(case: Case, harness: Arc<dyn Harness>) -> Outcome {
    let runtime = match harness.time() {
        Time::Virtual => Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()?,
        Time::Real => Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?,
    };
    let fixture = Arc::new(Fixture::new(harness));
    let outcome = runtime.block_on(async {
        let whole = async {
            (case.run)(Arc::clone(&fixture)).await?;
            fixture.finish().await
        };
        let limit = Failure::new(format!("not done after {CASE_LIMIT:?}"));
        tokio::time::timeout(CASE_LIMIT, whole)
            .await
            .unwrap_or(Err(limit))
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    outcome
}
