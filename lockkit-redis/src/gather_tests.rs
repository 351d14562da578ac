use super::*;
use std::future::poll_fn;
use std::task::Poll;
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, yield_now};

/// Doubles numbers, and notes how many it was given at a time.
struct Doubler {
    gather: Gather<Number>,
    batches: Mutex<Vec<usize>>,
    gate: Semaphore,
    is_down: bool,
}

struct Number(usize);

impl Joined for Number {
    type Context = Doubler;
    type Answer = usize;

    fn gather(context: &Doubler) -> &Gather<Self> {
        &context.gather
    }

    async fn send(context: &Arc<Doubler>, calls: Vec<Self>) -> Result<Vec<usize>> {
        context.batches.lock().unwrap().push(calls.len());
        context.gate.acquire().await.unwrap().forget();
        yield_now().await;
        if context.is_down {
            return Err(Error::new(ErrorKind::Unavailable, "down"));
        }
        Ok(calls.into_iter().map(|Self(number)| 2 * number).collect())
    }
}

impl Doubler {
    fn on(runtime: Handle, permits: usize, is_down: bool) -> Arc<Self> {
        Arc::new(Self {
            gather: Gather::new(runtime),
            batches: Mutex::default(),
            gate: Semaphore::new(permits),
            is_down,
        })
    }

    fn assert_idle(&self) {
        let state = self.gather.state();
        assert!(state.alone == 0 && !state.is_draining && state.gathered.is_empty());
    }
}

fn gated() -> Arc<Doubler> {
    Doubler::on(Handle::current(), 0, false)
}

async fn settle() {
    for _ in 0..100 {
        yield_now().await;
    }
}

#[tokio::test]
async fn few_calls_go_alone() {
    let context = Doubler::on(Handle::current(), 1_000, false);
    for number in 0..10 {
        let answer = Gather::call(&context, Number(number)).await;
        assert_eq!(answer.unwrap(), 2 * number);
    }
    assert_eq!(*context.batches.lock().unwrap(), [1; 10]);
    context.assert_idle();
}

#[tokio::test]
async fn many_calls_go_together_and_each_gets_its_own_answer() {
    let context = gated();
    let mut calls = JoinSet::new();
    for number in 0..100 {
        let context = Arc::clone(&context);
        calls.spawn(async move {
            (
                number,
                Gather::call(&context, Number(number)).await.unwrap(),
            )
        });
    }
    settle().await;
    context.gate.add_permits(1_000);
    while let Some(done) = calls.join_next().await {
        let (number, answer) = done.unwrap();
        assert_eq!(answer, 2 * number);
    }
    settle().await;
    let batches = context.batches.lock().unwrap().clone();
    assert_eq!(batches, [1, 1, 1, 1, MOST, MOST, MOST]);
    context.assert_idle();
}

/// As when a stream of calls is not polled while its consumer works.
#[tokio::test]
async fn calls_that_are_not_polled_hold_up_nobody() {
    let context = gated();
    let mut lazy: Vec<_> = (0..ALONE)
        .map(|number| Box::pin(Gather::call(&context, Number(number))))
        .collect();
    for call in &mut lazy {
        poll_fn(|cx| {
            assert!(call.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
    }
    context.gate.add_permits(1_000);
    for number in 0..50 {
        let answer = Gather::call(&context, Number(number)).await;
        assert_eq!(answer.unwrap(), 2 * number);
    }
    for (number, call) in lazy.into_iter().enumerate() {
        assert_eq!(call.await.unwrap(), 2 * number);
    }
    settle().await;
    context.assert_idle();
}

#[tokio::test]
async fn calls_that_are_dropped_hold_up_nobody() {
    let context = gated();
    let mut calls = Vec::new();
    for number in 0..50 {
        let context = Arc::clone(&context);
        calls.push(tokio::spawn(async move {
            Gather::call(&context, Number(number)).await
        }));
    }
    settle().await;
    for call in calls.iter().step_by(2) {
        call.abort();
    }
    context.gate.add_permits(1_000);
    for (number, call) in calls.into_iter().enumerate() {
        match call.await {
            Ok(answer) => assert_eq!(answer.unwrap(), 2 * number),
            Err(error) => assert!(error.is_cancelled() && number % 2 == 0),
        }
    }
    settle().await;
    context.assert_idle();
}

/// Else those at the end of a long queue would learn of it only after all before them.
#[tokio::test]
async fn an_outage_is_told_to_all_at_once() {
    let context = Doubler::on(Handle::current(), 0, true);
    let mut calls = JoinSet::new();
    for number in 0..1_000 {
        let context = Arc::clone(&context);
        calls.spawn(async move { Gather::call(&context, Number(number)).await });
    }
    settle().await;
    // One for each that went alone, and one for the first batch.
    context.gate.add_permits(ALONE + 1);
    while let Some(outcome) = calls.join_next().await {
        assert_eq!(outcome.unwrap().unwrap_err().kind(), ErrorKind::Unavailable);
    }
    settle().await;
    context.assert_idle();
}

#[test]
fn who_waits_learns_that_the_runtime_has_ended() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
    };
    let (ending, staying) = (runtime(), runtime());
    let context = Doubler::on(ending.handle().clone(), 0, false);
    for number in 0..ALONE {
        let context = Arc::clone(&context);
        ending.spawn(async move { Gather::call(&context, Number(number)).await });
    }
    ending.block_on(settle());
    let wait = || {
        let context = Arc::clone(&context);
        staying.spawn(async move { Gather::call(&context, Number(9)).await })
    };
    let waiting = wait();
    staying.block_on(settle());
    drop(ending);
    assert!(staying.block_on(waiting).unwrap().is_err());
    context.assert_idle();
    // And that it had ended before.
    context.gather.state().alone = ALONE;
    assert!(staying.block_on(wait()).unwrap().is_err());
    context.gather.state().alone = 0;
    context.assert_idle();
}
