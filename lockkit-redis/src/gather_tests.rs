use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, yield_now};

/// Doubles numbers, and notes how many it was given at a time.
#[derive(Default)]
struct Doubler {
    gather: Gather<Number>,
    batches: Mutex<Vec<usize>>,
    gate: Option<Semaphore>,
    dropped: AtomicUsize,
}

struct Number(usize);

impl<J: Joined> Default for Gather<J> {
    fn default() -> Self {
        Self::new()
    }
}

impl Joined for Number {
    type Context = Doubler;
    type Answer = usize;

    fn gather(context: &Doubler) -> &Gather<Self> {
        &context.gather
    }

    async fn send(context: &Arc<Doubler>, calls: Vec<Self>) -> Vec<usize> {
        context.batches.lock().unwrap().push(calls.len());
        if let Some(gate) = &context.gate {
            gate.acquire().await.unwrap().forget();
        }
        yield_now().await;
        context.dropped.fetch_add(calls.len(), Ordering::SeqCst);
        calls.into_iter().map(|Self(number)| 2 * number).collect()
    }
}

fn gated() -> Arc<Doubler> {
    Arc::new(Doubler {
        gate: Some(Semaphore::new(0)),
        ..Doubler::default()
    })
}

fn open(context: &Doubler) {
    context.gate.as_ref().unwrap().add_permits(1_000);
}

async fn settle() {
    for _ in 0..100 {
        yield_now().await;
    }
}

#[tokio::test]
async fn few_calls_go_alone() {
    let context = Arc::new(Doubler::default());
    for number in 0..10 {
        assert_eq!(
            Gather::call(&context, Number(number)).await,
            Some(2 * number)
        );
    }
    assert_eq!(*context.batches.lock().unwrap(), [1; 10]);
    assert_eq!(context.gather.state().under_way, 0);
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
    open(&context);
    while let Some(done) = calls.join_next().await {
        let (number, answer) = done.unwrap();
        assert_eq!(answer, 2 * number);
    }
    settle().await;
    let batches = context.batches.lock().unwrap().clone();
    assert_eq!(batches.iter().sum::<usize>(), 100);
    assert!(batches.iter().all(|size| *size <= MOST));
    assert_eq!(batches.len(), UNDER_WAY + 3, "{batches:?}");
    assert_eq!(context.gather.state().under_way, 0);
}

/// Also where the one is dropped on whose turn the others depend.
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
    open(&context);
    for (number, call) in calls.into_iter().enumerate() {
        match call.await {
            Ok(answer) => assert_eq!(answer, Some(2 * number)),
            Err(error) => assert!(error.is_cancelled() && number % 2 == 0),
        }
    }
    settle().await;
    assert_eq!(context.gather.state().under_way, 0);
}

#[test]
fn who_waits_learns_that_the_runtime_has_ended() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
    };
    let context = gated();
    let ending = runtime();
    for number in 0..UNDER_WAY {
        let context = Arc::clone(&context);
        ending.spawn(async move { Gather::call(&context, Number(number)).await });
    }
    ending.block_on(settle());
    let staying = runtime();
    let waiting = {
        let context = Arc::clone(&context);
        staying.spawn(async move { Gather::call(&context, Number(9)).await })
    };
    staying.block_on(settle());
    drop(ending);
    assert_eq!(staying.block_on(waiting).unwrap(), None);
    assert_eq!(context.gather.state().under_way, 0);
}
