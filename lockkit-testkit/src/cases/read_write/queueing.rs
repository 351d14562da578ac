//! Who comes after whom.

use std::sync::Arc;
use std::time::Duration;

use lockkit_core::{ErrorKind, Guard};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::rw;
use crate::cases::topic;
use crate::failure::ensure;
use crate::fixture::unlock;
use crate::{Client, Fixture, Outcome, Waiting};

topic! { "read_write":
    a_writer_in_line_stops_the_readers_behind_it [ReadWrite],
    after_a_writer_all_readers_up_to_the_next_writer_enter_together [ReadWrite],
    readers_and_writers_are_served_in_the_order_of_their_coming [ReadWrite],
    a_writer_that_gives_up_lets_the_readers_behind_it_in_at_once [ReadWrite],
    a_wait_that_runs_out_leaves_no_place_in_line_of_readers_and_writers [ReadWrite],
    a_stream_of_readers_does_not_starve_a_writer [ReadWrite],
}

async fn reads(f: &Fixture, client: &Client) -> Outcome<Waiting<Guard>> {
    let read = client.read_write("n").read();
    (f.queues(client, &rw("n")?, async move { read.lock().await })).await
}

async fn writes(f: &Fixture, client: &Client) -> Outcome<Waiting<Guard>> {
    let write = client.read_write("n").write();
    (f.queues(client, &rw("n")?, async move { write.lock().await })).await
}

async fn a_writer_in_line_stops_the_readers_behind_it(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let reader = f.gets(&a.read_write("n").read()).await?;
    let writer = writes(&f, &b).await?;
    for client in [&a, &b] {
        let tried = client.read_write("n").read().try_lock().await?;
        ensure!(tried.is_none(), "a try went past a writer in line");
    }
    let late = reads(&f, &a).await?;
    ensure!(late.waits().await, "a reader went past a writer in line");
    ensure!(writer.waits().await, "a writer beside a reader");
    unlock(reader).await?;
    let writer = writer.served().await?;
    ensure!(late.waits().await, "a reader beside a writer");
    unlock(writer).await?;
    unlock(late.served().await?).await
}

async fn after_a_writer_all_readers_up_to_the_next_writer_enter_together(
    f: Arc<Fixture>,
) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let first = f.gets(&a.read_write("n").write()).await?;
    let mut run = Vec::new();
    for client in [&a, &b, &b] {
        run.push(reads(&f, client).await?);
    }
    let second = writes(&f, &a).await?;
    let behind = reads(&f, &b).await?;
    unlock(first).await?;
    let mut readers = Vec::new();
    for reader in run {
        readers.push(reader.served().await?);
    }
    // None of them was needed to leave for the others to enter.
    let holders = a.inspect(&rw("n")?).await?.holders.len();
    ensure!(holders == 3, "{holders} of 3 readers are in");
    ensure!(second.waits().await, "a writer beside readers");
    ensure!(behind.waits().await, "a reader went past a writer in line");
    for reader in readers {
        unlock(reader).await?;
    }
    unlock(second.served().await?).await?;
    unlock(behind.served().await?).await
}

async fn readers_and_writers_are_served_in_the_order_of_their_coming(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let first = f.gets(&a.read_write("n").write()).await?;
    let (tell, mut told) = mpsc::unbounded_channel();
    let mut calls = Vec::new();
    // Writers only among neighbours, so that the order in which they report is that of entering.
    let wishes = [true, false, true, true, false, true];
    for (number, to_write) in wishes.into_iter().enumerate() {
        let lock = if number % 2 == 0 { &a } else { &b }.read_write("n");
        let tell = tell.clone();
        let call = async move {
            let guard = if to_write {
                lock.write().lock().await?
            } else {
                lock.read().lock().await?
            };
            let _ = tell.send(number);
            drop(guard);
            Ok(())
        };
        calls.push(f.queues(&a, &rw("n")?, call).await?);
    }
    unlock(first).await?;
    for call in calls {
        call.served().await?;
    }
    for number in 0..wishes.len() {
        let next = told.recv().await;
        ensure!(next == Some(number), "{next:?} came instead of {number}");
    }
    Ok(())
}

async fn a_writer_that_gives_up_lets_the_readers_behind_it_in_at_once(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    // Once by dropping the call, once by running out of time.
    let reader = f.gets(&a.read_write("n").read()).await?;
    let writer = writes(&f, &b).await?;
    let behind = [reads(&f, &a).await?, reads(&f, &b).await?];
    ensure!(behind[0].waits().await, "a reader went past a writer");
    writer.drop_call().await;
    for late in behind {
        unlock(late.served().await?).await?;
    }
    let write = b.read_write("n").wait(Duration::from_millis(300)).write();
    let writer = (f.queues(&a, &rw("n")?, async move { write.lock().await })).await?;
    let late = reads(&f, &a).await?;
    let answer = writer.answer().await?;
    ensure!(
        answer.is_err_and(|e| e.kind() == ErrorKind::Timeout),
        "a writer beside a reader"
    );
    unlock(late.served().await?).await?;
    ensure!(reader.is_held(), "the first reader was lost");
    Ok(())
}

async fn a_wait_that_runs_out_leaves_no_place_in_line_of_readers_and_writers(
    f: Arc<Fixture>,
) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let wait = Duration::from_millis(50);
    let writer = f.gets(&a.read_write("n").write()).await?;
    let lock = b.read_write("n").wait(wait);
    let (read, write) = (lock.read().lock().await, lock.write().lock().await);
    for answer in [read, write] {
        ensure!(
            answer.is_err_and(|e| e.kind() == ErrorKind::Timeout),
            "entered beside a writer"
        );
    }
    f.until_of(&a, &rw("n")?, "without waiters", |s| s.waiters.is_empty())
        .await?;
    unlock(writer).await
}

async fn a_stream_of_readers_does_not_starve_a_writer(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let mut readers = tokio::task::JoinSet::new();
    for number in 0..4 {
        // At least one of them reads at every moment.
        let read = if number % 2 == 0 { &a } else { &b }.read_write("n").read();
        let pause = Duration::from_millis(5 + number);
        readers.spawn(async move {
            loop {
                let guard = read.lock().await?;
                tokio::time::sleep(pause).await;
                let _ = guard.unlock().await?;
            }
            #[allow(unreachable_code, reason = "says what type of error there is")]
            Outcome::Ok(())
        });
    }
    let write = b.read_write("n").write();
    for _ in 0..5 {
        unlock(timeout(f.soon(), write.lock()).await??).await?;
    }
    readers.shutdown().await;
    Ok(())
}
