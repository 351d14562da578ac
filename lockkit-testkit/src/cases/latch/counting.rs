//! Counting down: once for each participant.

use std::sync::Arc;

use lockkit_core::ErrorKind;
use tokio::task::JoinSet;

use super::waits;
use crate::cases::topic;
use crate::failure::ensure;
use crate::wire::Fault;
use crate::{Fixture, Outcome};

topic! { "latch":
    a_participant_counts_once_however_often_it_says_so [Latch],
    a_count_whose_reply_was_lost_and_that_is_repeated_counts_once [Latch],
    counting_on_an_open_latch_changes_nothing [Latch],
    a_latch_that_is_not_set_cannot_be_counted_down [Latch],
    a_participant_without_an_id_is_refused_before_any_request [Latch],
    nobody_is_forgotten_among_many_participants [Latch],
}

async fn a_participant_counts_once_however_often_it_says_so(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    a.latch("n").try_set(2).await?;
    let waiting = waits(&f, &b).await?;
    for client in [&a, &b, &a, &b] {
        let left = client.latch("n").count_down("x").await?;
        ensure!(left == 1, "{left} of 2 are left after one came");
    }
    ensure!(waiting.waits().await, "passed a closed latch");
    // Alike, and not the same.
    let left = b.latch("n").count_down("X").await?;
    ensure!(left == 0, "{left} of 2 are left after two came");
    waiting.served().await
}

async fn a_count_whose_reply_was_lost_and_that_is_repeated_counts_once(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    a.latch("n").try_set(2).await?;
    a.wire().set_for(Fault::LostReply, 1);
    let lost = a.latch("n").count_down("x").await;
    ensure!(
        lost.is_err_and(|e| e.kind() == ErrorKind::Unavailable),
        "a lost reply is no error"
    );
    let left = a.latch("n").count_down("x").await?;
    ensure!(left == 1, "{left} of 2 are left after one came");
    let left = b.latch("n").count().await?;
    ensure!(left == Some(1), "{left:?} of 2 are left after one came");
    // One that did not arrive has not counted.
    a.wire().set_for(Fault::Cut, 1);
    ensure!(a.latch("n").count_down("y").await.is_err(), "through a cut");
    ensure!(b.latch("n").count().await? == Some(1), "counted");
    a.latch("n").count_down("y").await?;
    ensure!(b.latch("n").count().await? == Some(0), "not counted");
    Ok(())
}

async fn counting_on_an_open_latch_changes_nothing(f: Arc<Fixture>) -> Outcome {
    let client = f.client().await?;
    client.latch("n").try_set(1).await?;
    for participant in ["x", "x", "y"] {
        let left = client.latch("n").count_down(participant).await?;
        ensure!(left == 0, "{left} are left of an open latch");
    }
    client.latch("n").wait().await?;
    // And it has not counted for the next time.
    client.latch("n").try_set(2).await?;
    let left = client.latch("n").count_down("y").await?;
    ensure!(left == 1, "{left} of 2 are left after one came");
    client.latch("n").count_down("x").await?;
    Ok(())
}

async fn a_latch_that_is_not_set_cannot_be_counted_down(f: Arc<Fixture>) -> Outcome {
    let client = f.client().await?;
    for _ in 0..2 {
        let answer = client.latch("n").count_down("x").await;
        ensure!(
            answer.is_err_and(|e| e.kind() == ErrorKind::InvalidArgument),
            "counted on a latch that nobody has set"
        );
        client.latch("n").try_set(1).await?;
        let left = client.latch("n").count_down("x").await?;
        ensure!(left == 0, "{left} of 1 are left after one came");
        ensure!(client.latch("n").reset().await?, "not reset");
    }
    Ok(())
}

async fn a_participant_without_an_id_is_refused_before_any_request(f: Arc<Fixture>) -> Outcome {
    let client = f.client().await?;
    client.latch("n").try_set(1).await?;
    let before = client.wire().requests();
    for participant in ["", &"x".repeat(201)] {
        let answer = client.latch("n").count_down(participant).await;
        ensure!(
            answer.is_err_and(|e| e.kind() == ErrorKind::InvalidArgument),
            "counted for {participant:?}"
        );
    }
    let requests = client.wire().requests() - before;
    ensure!(requests == 0, "{requests} requests");
    client.latch("n").count_down("x".repeat(200)).await?;
    Ok(())
}

async fn nobody_is_forgotten_among_many_participants(f: Arc<Fixture>) -> Outcome {
    const PARTICIPANTS: u32 = 40;
    let clients = [f.client().await?, f.client().await?];
    clients[0].latch("n").try_set(PARTICIPANTS).await?;
    let mut tasks = JoinSet::new();
    for number in 0..PARTICIPANTS {
        let latch = clients[number as usize % 2].latch("n");
        tasks.spawn(async move {
            let participant = format!("worker {number}");
            latch.count_down(&participant).await?;
            latch.count_down(&participant).await
        });
    }
    let mut last = 0;
    while let Some(left) = tasks.join_next().await {
        last += usize::from(left?? == 0);
    }
    ensure!(last >= 1, "nobody was told to be the last");
    let left = clients[1].latch("n").count().await?;
    ensure!(left == Some(0), "{left:?} are left");
    Ok(())
}
