//! Whom a release wakes: those it lets in, and nobody else. Counted, not timed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lockkit_core::{
    Attempt, Backend, Claim, ErrorKind, LockName, Mode, Pick, Primitive, Resource, Snapshot,
};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::contract::{hold, release};
use super::topic;
use crate::failure::ensure;
use crate::fixture::{mutex, resource};
use crate::{Client, Failure, Fixture, Outcome};

topic! { "wake_ups":
    a_release_of_a_fair_mutex_wakes_the_first_in_line [Fair],
    a_release_by_a_writer_wakes_the_readers_up_to_the_next_writer [ReadWrite],
    a_release_by_a_reader_beside_another_wakes_nobody [ReadWrite],
    a_downgrade_wakes_the_readers_that_come_next [ReadWrite],
    a_release_of_permits_wakes_as_many_as_fit [Semaphore],
    a_release_of_a_segment_wakes_the_first_who_wants_it [Segmented],
    a_latch_that_opens_wakes_everybody_and_only_then [Latch],
    those_who_give_up_among_many_leave_the_others_in_order [Fair],
    those_who_give_up_among_many_who_want_a_permit_leave_the_others_in_order [Semaphore],
}

/// Claims that stand in line, each with somebody who listens.
struct Line {
    claims: Vec<Claim>,
    woken: mpsc::UnboundedReceiver<(usize, bool)>,
    listeners: JoinSet<()>,
}

impl Line {
    async fn of(f: &Fixture, resource: &Resource, modes: &[Mode]) -> Outcome<Self> {
        let (tell, woken) = mpsc::unbounded_channel();
        let (mut claims, mut listeners) = (Vec::new(), JoinSet::new());
        for (number, mode) in modes.iter().enumerate() {
            // Each as another process would be: nothing is shared that could hide a herd.
            let backend = f.backend().await?;
            let claim = f.claim_of(resource, *mode);
            let mut ticket = backend.enter(claim.clone())?;
            let outcome = ticket.attempt().await?;
            ensure!(
                matches!(outcome, Attempt::Busy { .. }),
                "{number} did not have to wait: {outcome:?}"
            );
            claims.push(claim);
            let tell = tell.clone();
            listeners.spawn(async move {
                loop {
                    ticket.changed().await;
                    let held = matches!(ticket.attempt().await, Ok(Attempt::Held(_)));
                    if tell.send((number, held)).is_err() || held {
                        return;
                    }
                }
            });
        }
        // Whoever was woken by those that came after it has been by now.
        sleep(f.by_clock(Duration::from_millis(5), Duration::from_millis(50))).await;
        let mut line = Self {
            claims,
            woken,
            listeners,
        };
        let early = line.woken.try_recv();
        ensure!(early.is_err(), "woken by a newcomer: {early:?}");
        Ok(line)
    }

    /// Whether these were woken, and hold, and nobody else was.
    async fn wakes(&mut self, f: &Fixture, admitted: &[usize]) -> Outcome {
        let mut missing: BTreeSet<usize> = admitted.iter().copied().collect();
        while !missing.is_empty() {
            let next = timeout(f.soon(), self.woken.recv()).await;
            let (number, held) = next
                .map_err(|_| Failure::new(format!("{missing:?} were not woken")))?
                .ok_or_else(|| Failure::new("nobody listens"))?;
            ensure!(held, "{number} was woken and not let in");
            ensure!(missing.remove(&number), "{number} was let in out of turn");
        }
        sleep(f.by_clock(Duration::from_millis(20), Duration::from_millis(100))).await;
        let more = self.woken.try_recv();
        ensure!(more.is_err(), "one more was woken: {more:?}");
        Ok(())
    }

    async fn release(&self, backend: &Arc<dyn Backend>, number: usize) -> Outcome {
        release(backend, &self.claims[number].id()).await?;
        Ok(())
    }

    /// Withdraws whoever still waits or holds, from behind so that nobody enters meanwhile.
    async fn end(mut self, backend: &Arc<dyn Backend>) -> Outcome {
        // Whoever still listens would take its withdrawal for news, and ask again.
        self.listeners.shutdown().await;
        for claim in self.claims.iter().rev() {
            release(backend, &claim.id()).await?;
        }
        Ok(())
    }
}

async fn a_release_of_a_fair_mutex_wakes_the_first_in_line(f: Arc<Fixture>) -> Outcome {
    let (backend, n) = (f.backend().await?, mutex("n")?);
    let held = f.claim_of(&n, Mode::Exclusive);
    hold(&backend, &held).await?;
    let mut line = Line::of(&f, &n, &[Mode::Exclusive; 5]).await?;
    release(&backend, &held.id()).await?;
    for number in 0..4 {
        line.wakes(&f, &[number]).await?;
        line.release(&backend, number).await?;
    }
    line.wakes(&f, &[4]).await?;
    line.end(&backend).await
}

async fn a_release_by_a_writer_wakes_the_readers_up_to_the_next_writer(f: Arc<Fixture>) -> Outcome {
    let (backend, n) = (f.backend().await?, resource(Primitive::ReadWrite, "n")?);
    let held = f.claim_of(&n, Mode::Exclusive);
    hold(&backend, &held).await?;
    let (read, write) = (Mode::Shared, Mode::Exclusive);
    let modes = [read, read, read, write, read, write];
    let mut line = Line::of(&f, &n, &modes).await?;
    release(&backend, &held.id()).await?;
    line.wakes(&f, &[0, 1, 2]).await?;
    for (number, next) in [(0, &[][..]), (2, &[]), (1, &[3]), (3, &[4]), (4, &[5])] {
        line.release(&backend, number).await?;
        line.wakes(&f, next).await?;
    }
    line.end(&backend).await
}

async fn a_release_by_a_reader_beside_another_wakes_nobody(f: Arc<Fixture>) -> Outcome {
    let (backend, n) = (f.backend().await?, resource(Primitive::ReadWrite, "n")?);
    let readers = [f.claim_of(&n, Mode::Shared), f.claim_of(&n, Mode::Shared)];
    for reader in &readers {
        hold(&backend, reader).await?;
    }
    let mut line = Line::of(&f, &n, &[Mode::Exclusive, Mode::Shared]).await?;
    release(&backend, &readers[0].id()).await?;
    line.wakes(&f, &[]).await?;
    release(&backend, &readers[1].id()).await?;
    line.wakes(&f, &[0]).await?;
    line.end(&backend).await
}

async fn a_downgrade_wakes_the_readers_that_come_next(f: Arc<Fixture>) -> Outcome {
    let (backend, n) = (f.backend().await?, resource(Primitive::ReadWrite, "n")?);
    let held = f.claim_of(&n, Mode::Exclusive);
    hold(&backend, &held).await?;
    let (read, write) = (Mode::Shared, Mode::Exclusive);
    let mut line = Line::of(&f, &n, &[read, read, write, read]).await?;
    backend.convert(&held.id(), read).await?;
    line.wakes(&f, &[0, 1]).await?;
    line.end(&backend).await?;
    release(&backend, &held.id()).await?;
    Ok(())
}

async fn a_release_of_permits_wakes_as_many_as_fit(f: Arc<Fixture>) -> Outcome {
    let (backend, n) = (f.backend().await?, resource(Primitive::Semaphore, "n")?);
    let permits = |count| Mode::Permits { count, limit: 4 };
    let held = [f.claim_of(&n, permits(1)), f.claim_of(&n, permits(3))];
    for claim in &held {
        hold(&backend, claim).await?;
    }
    let modes = [2, 1, 2, 1].map(permits);
    let mut line = Line::of(&f, &n, &modes).await?;
    release(&backend, &held[0].id()).await?;
    line.wakes(&f, &[]).await?;
    release(&backend, &held[1].id()).await?;
    line.wakes(&f, &[0, 1]).await?;
    line.release(&backend, 1).await?;
    line.wakes(&f, &[2]).await?;
    line.release(&backend, 0).await?;
    line.wakes(&f, &[3]).await?;
    line.end(&backend).await
}

async fn a_release_of_a_segment_wakes_the_first_who_wants_it(f: Arc<Fixture>) -> Outcome {
    let (backend, n) = (f.backend().await?, resource(Primitive::Segmented, "n")?);
    let only = |segment| Mode::Segment {
        pick: Pick::Only(segment),
        of: 2,
    };
    let any = Mode::Segment {
        pick: Pick::Any { prefer: 0 },
        of: 2,
    };
    let held = [f.claim_of(&n, only(0)), f.claim_of(&n, only(1))];
    for claim in &held {
        hold(&backend, claim).await?;
    }
    let mut line = Line::of(&f, &n, &[only(0), only(0), any, only(1)]).await?;
    release(&backend, &held[1].id()).await?;
    line.wakes(&f, &[2]).await?;
    release(&backend, &held[0].id()).await?;
    line.wakes(&f, &[0]).await?;
    line.release(&backend, 0).await?;
    line.wakes(&f, &[1]).await?;
    line.release(&backend, 2).await?;
    line.wakes(&f, &[3]).await?;
    line.end(&backend).await
}

async fn a_latch_that_opens_wakes_everybody_and_only_then(f: Arc<Fixture>) -> Outcome {
    let (backend, n) = (f.backend().await?, resource(Primitive::Latch, "n")?);
    ensure!(backend.set_latch(&n, 2).await?, "not set");
    let mut line = Line::of(&f, &n, &[Mode::Shared; 5]).await?;
    backend.count_down(&n, &LockName::new("x")?).await?;
    line.wakes(&f, &[]).await?;
    backend.count_down(&n, &LockName::new("y")?).await?;
    line.wakes(&f, &[0, 1, 2, 3, 4]).await?;
    // Their places stay until somebody says that they have passed.
    line.end(&backend).await
}

/// Many wait, every fifth gives up; the others are served in the order in which they stood.
async fn some_give_up<F>(
    f: &Arc<Fixture>,
    n: Resource,
    call: impl Fn(&Client, String, Option<Duration>) -> F,
) -> Outcome
where
    F: Future<Output = lockkit_core::Result<lockkit_core::Guard>> + Send + 'static,
{
    let many = f.by_clock(1000, 50);
    let patience = f.by_clock(Duration::from_secs(2), Duration::from_secs(4));
    let (a, b) = (f.client().await?, f.client().await?);
    let held = f.is_done(call(&a, "holder".into(), None)).await?;
    let (tell, mut told) = mpsc::unbounded_channel();
    let mut calls = JoinSet::new();
    for number in 0..many {
        let client = if number % 2 == 0 { &a } else { &b };
        let gives_up = number % 5 == 4;
        let wait = gives_up.then_some(patience);
        let (call, tell) = (call(client, number.to_string(), wait), tell.clone());
        calls.spawn(async move {
            match call.await {
                Ok(guard) => {
                    let _ = tell.send(number.to_string());
                    drop(guard);
                    Outcome::Ok(false)
                }
                Err(error) if error.kind() == ErrorKind::Timeout => Ok(true),
                Err(error) => Err(error.into()),
            }
        });
    }
    let labels =
        |s: &Snapshot| -> Vec<String> { s.waiters.iter().map(|w| w.label.text().into()).collect() };
    let all = f
        .until_of(&a, &n, "all in line", |s| s.waiters.len() == many)
        .await?;
    let gives_up = |label: &String| label.parse::<usize>().is_ok_and(|number| number % 5 == 4);
    let stay = many - many / 5;
    let expected: Vec<String> = labels(&all).into_iter().filter(|l| !gives_up(l)).collect();
    let rest = f
        .until_of(&a, &n, "left by a fifth", |s| s.waiters.len() == stay)
        .await?;
    ensure!(labels(&rest) == expected, "the order changed");
    drop(held);
    for (place, expected) in expected.iter().enumerate() {
        let next = timeout(f.soon(), told.recv()).await?;
        ensure!(
            next.as_ref() == Some(expected),
            "place {place}: {next:?} instead of {expected}"
        );
    }
    let mut gave_up = 0;
    while let Some(call) = calls.join_next().await {
        gave_up += usize::from(call??);
    }
    ensure!(gave_up == many / 5, "{gave_up} of {} gave up", many / 5);
    f.until_of(&a, &n, "idle", Snapshot::is_idle).await?;
    Ok(())
}

async fn those_who_give_up_among_many_leave_the_others_in_order(f: Arc<Fixture>) -> Outcome {
    some_give_up(&f, mutex("n")?, |client, label, wait| {
        let lock = client.mutex("n").fair().label(label);
        let lock = lock.wait(wait.unwrap_or(Duration::MAX));
        async move { lock.lock().await }
    })
    .await
}

async fn those_who_give_up_among_many_who_want_a_permit_leave_the_others_in_order(
    f: Arc<Fixture>,
) -> Outcome {
    let n = resource(Primitive::Semaphore, "n")?;
    some_give_up(&f, n, |client, label, wait| {
        let lock = client.semaphore("n", 1).label(label);
        let lock = lock.wait(wait.unwrap_or(Duration::MAX));
        async move { lock.acquire().await }
    })
    .await
}
