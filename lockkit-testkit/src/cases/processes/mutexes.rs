//! Mutexes of other processes: holding, ending, being killed, being stopped.

use std::sync::Arc;
use std::time::Duration;

use lockkit_core::{Fence, Unlocked};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::{after_crash, killed};
use crate::cases::topic;
use crate::failure::ensure;
use crate::fixture::{mutex, unlock};
use crate::{Fixture, History, Outcome};

topic! { "processes":
    a_child_excludes_its_parent_until_it_unlocks [Processes],
    a_killed_holder_frees_the_name [Processes],
    a_holder_that_exits_without_a_word_frees_the_name [Processes],
    a_killed_waiter_is_not_in_the_way [Processes],
    a_killed_waiter_does_not_hold_up_a_fair_line [Processes, Fair],
    a_stopped_holder_learns_of_its_loss_before_it_can_do_anything [Processes],
    a_child_that_closes_leaves_nothing [Processes],
    no_update_is_lost_among_eight_processes [Processes],
    fences_rise_across_processes [Processes, Fences],
}

async fn a_child_excludes_its_parent_until_it_unlocks(f: Arc<Fixture>) -> Outcome {
    let client = f.client().await?;
    let mut child = f.peer().await?;
    let fence = child.lock("n", f.long(), f.soon()).await?;
    ensure!(fence.is_some(), "the name was busy");
    ensure!(client.mutex("n").try_lock().await?.is_none(), "two holders");
    let lock = client.mutex("n");
    let waiter = tokio::spawn(async move { lock.lock().await });
    f.stand(&client, &mutex("n")?, 1).await?;
    let since = Instant::now();
    ensure!(child.ask("unlock n").await? == "clean", "the child lost it");
    let guard = timeout(f.soon(), waiter).await???;
    ensure!(
        since.elapsed() < Duration::from_secs(3),
        "woken after {:?}",
        since.elapsed()
    );
    ensure!(
        fence.is_some_and(|fence| f.rises(fence, guard.fence())),
        "{} after {fence:?}",
        guard.fence()
    );
    ensure!(
        child
            .ask(&format!("try n {}", f.long().as_millis()))
            .await?
            == "busy",
        "two holders"
    );
    unlock(guard).await?;
    child.close().await
}

/// How a child ends that is not asked to let go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Killed,
    Exited,
}

async fn holder_ends(f: Arc<Fixture>, ending: Ending) -> Outcome {
    let client = f.client().await?;
    let (lease, bound) = after_crash(&f);
    // Once with somebody waiting at that moment, once without.
    for waiting in [true, false] {
        let mut child = f.peer().await?;
        let fence = child.lock("n", lease, f.soon()).await?;
        let lock = client.mutex("n");
        let waiter = waiting.then(|| {
            let lock = lock.clone();
            tokio::spawn(async move { lock.lock().await })
        });
        if waiting {
            f.stand(&client, &mutex("n")?, 1).await?;
        }
        match ending {
            Ending::Killed => killed(&f, child).await?,
            Ending::Exited => {
                child.exit().await?;
                f.crashed();
            }
        }
        let guard = match waiter {
            Some(waiter) => timeout(bound, waiter).await???,
            None => timeout(bound, lock.lock()).await??,
        };
        ensure!(
            fence.is_some_and(|fence| f.rises(fence, guard.fence())),
            "{} after {fence:?}",
            guard.fence()
        );
        ensure!(
            guard.unlock().await? == Unlocked::Clean,
            "the hold was lost"
        );
    }
    Ok(())
}

async fn a_killed_holder_frees_the_name(f: Arc<Fixture>) -> Outcome {
    holder_ends(f, Ending::Killed).await
}

async fn a_holder_that_exits_without_a_word_frees_the_name(f: Arc<Fixture>) -> Outcome {
    holder_ends(f, Ending::Exited).await
}

async fn a_killed_waiter_is_not_in_the_way(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let guard = f.gets(&a.mutex("n")).await?;
    let (lease, bound) = after_crash(&f);
    let mut child = f.peer().await?;
    child.begin_lock("n", lease, f.long()).await?;
    f.stand(&a, &mutex("n")?, 1).await?;
    killed(&f, child).await?;
    unlock(guard).await?;
    unlock(timeout(bound, b.mutex("n").lock()).await??).await?;
    Ok(())
}

async fn a_killed_waiter_does_not_hold_up_a_fair_line(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let guard = f.gets(&a.mutex("n").fair()).await?;
    let (lease, bound) = after_crash(&f);
    let mut child = f.peer().await?;
    child.begin("fair", "n", lease, f.long()).await?;
    f.stand(&a, &mutex("n")?, 1).await?;
    // A service may not know yet that the first in line is dead, and let it in. Then who is behind waits
    // for that lease, and looks when it renews its own place: so that is not to take long.
    let lock = b.mutex("n").fair().ttl(f.lease() * 3);
    let behind = tokio::spawn(async move { lock.lock().await });
    f.until(&a, "n", "two waiters", |s| s.waiters.len() == 2)
        .await?;
    killed(&f, child).await?;
    unlock(guard).await?;
    unlock(timeout(bound, behind).await???).await?;
    Ok(())
}

async fn a_stopped_holder_learns_of_its_loss_before_it_can_do_anything(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.client().await?, f.client().await?);
    let mut child = f.peer().await?;
    let fence = child.lock("n", f.lease(), f.soon()).await?;
    ensure!(fence.is_some(), "the name was busy");
    ensure!(
        child.ask("is_held n").await? == "true",
        "held, and not held"
    );
    child.pause()?;
    let guard = timeout(f.lease() * 2 + f.soon(), a.mutex("n").lock()).await??;
    ensure!(
        fence.is_some_and(|fence| f.rises(fence, guard.fence())),
        "{} after {fence:?}",
        guard.fence()
    );
    // In the pipe before it goes on, so that nothing comes first.
    child.tell("is_held n").await?;
    child.tell("unlock n").await?;
    child.resume()?;
    let held = child.answer(Duration::ZERO).await?;
    ensure!(
        held == "false",
        "it believes in a lock that somebody else has"
    );
    let unlocked = child.answer(Duration::ZERO).await?;
    ensure!(
        unlocked == "lost",
        "it unlocked what it had lost: {unlocked}"
    );
    // Closing proves that its release was sent.
    child.close().await?;
    ensure!(
        b.mutex("n").try_lock().await?.is_none(),
        "it let a second holder in"
    );
    ensure!(
        guard.unlock().await? == Unlocked::Clean,
        "it freed its successor's hold"
    );
    Ok(())
}

async fn a_child_that_closes_leaves_nothing(f: Arc<Fixture>) -> Outcome {
    let client = f.client().await?;
    let mut child = f.peer().await?;
    for name in ["x", "y"] {
        child.lock(name, f.long(), f.soon()).await?;
    }
    child.close().await?;
    for name in ["x", "y"] {
        let guard = client.mutex(name).try_lock().await?;
        ensure!(guard.is_some(), "{name} is busy after the close");
    }
    Ok(())
}

async fn no_update_is_lost_among_eight_processes(f: Arc<Fixture>) -> Outcome {
    const ROUNDS: usize = 25;
    let file = std::env::temp_dir().join(format!("lockkit-count-{}", rand_word()));
    std::fs::write(&file, "0")?;
    let mut children = JoinSet::new();
    for _ in 0..8 {
        let mut child = f.peer().await?;
        let file = file.clone();
        children.spawn(async move {
            let spans = child.count("n", &file, ROUNDS).await?;
            child.close().await?;
            Outcome::Ok(spans)
        });
    }
    let history = f.history();
    while let Some(spans) = children.join_next().await {
        spans??.into_iter().for_each(|span| history.add(span));
    }
    let total = std::fs::read_to_string(&file)?;
    std::fs::remove_file(&file)?;
    ensure!(
        total == (8 * ROUNDS).to_string(),
        "{total} of {} updates are left",
        8 * ROUNDS
    );
    sound(&history)
}

/// A word that no other test has.
fn rand_word() -> String {
    lockkit_core::AttemptId::random().to_string()
}

fn sound(history: &History) -> Outcome {
    ensure!(!history.spans().is_empty(), "nothing was recorded");
    history.sound()
}

async fn fences_rise_across_processes(f: Arc<Fixture>) -> Outcome {
    let client = f.client().await?;
    let mut children = [f.peer().await?, f.peer().await?, f.peer().await?];
    let mut highest = Fence::new(0);
    let mut rises = |fence: Fence| {
        ensure!(fence > highest, "{fence} came after {highest}");
        highest = fence;
        Outcome::Ok(())
    };
    for round in 0..12 {
        let child = &mut children[round % 3];
        let fence = child.lock("n", f.long(), f.soon()).await?;
        rises(fence.ok_or_else(|| crate::Failure::new("busy"))?)?;
        ensure!(child.ask("unlock n").await? == "clean", "the child lost it");
        rises(f.passes(&client.mutex("n")).await?)?;
    }
    let (lease, bound) = after_crash(&f);
    for mut child in children {
        let fence = child.lock("n", lease, f.soon()).await?;
        rises(fence.ok_or_else(|| crate::Failure::new("busy"))?)?;
        killed(&f, child).await?;
        let guard = timeout(bound, client.mutex("n").lock()).await??;
        rises(guard.fence())?;
        unlock(guard).await?;
    }
    Ok(())
}
