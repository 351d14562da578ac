use super::*;
use crate::{AttemptId, LockName, Primitive, Resource};

fn hold(ttl: Duration) -> Hold {
    let resource = Resource::new(Primitive::Mutex, LockName::new("a").unwrap());
    let id = HoldId::new(resource, AttemptId::random());
    let grant = Grant {
        fence: Fence::new(1),
        sent_at: Clock::Tokio.now(),
        ttl,
        segment: None,
    };
    let observer = Observer::new("memory", false);
    Hold::new(id, Mode::Exclusive, Clock::Tokio, observer, grant)
}

#[tokio::test(start_paused = true)]
async fn a_late_renewal_does_not_revive() {
    let hold = hold(Duration::from_secs(1));
    tokio::time::advance(Duration::from_secs(1)).await;
    hold.renewed(Clock::Tokio.now(), Duration::from_secs(9));
    assert_eq!(hold.loss(), Some(LossReason::Expired));
    assert_eq!(hold.end_by_release(), Err(LossReason::Expired));
}

#[tokio::test(start_paused = true)]
async fn the_request_that_left_last_counts() {
    let hold = hold(Duration::from_secs(100));
    let first = Clock::Tokio.now();
    tokio::time::advance(Duration::from_secs(1)).await;
    hold.renewed(Clock::Tokio.now(), Duration::from_secs(10));
    assert_eq!(hold.remaining(), Duration::from_millis(9_400));
    hold.renewed(first, Duration::from_secs(100));
    assert_eq!(
        hold.remaining(),
        Duration::from_millis(9_400),
        "an older answer"
    );
}

#[tokio::test(start_paused = true)]
async fn a_token_made_after_the_loss_is_cancelled() {
    let hold = hold(Duration::from_secs(5));
    hold.lose(LossReason::Gone);
    hold.lose(LossReason::Closed);
    assert!(hold.token().is_cancelled());
    assert_eq!(
        hold.loss(),
        Some(LossReason::Gone),
        "the first reason stays"
    );
}

#[tokio::test(start_paused = true)]
async fn a_release_is_no_loss() {
    let hold = hold(Duration::from_secs(1));
    let token = hold.token().clone();
    assert_eq!(hold.end_by_release(), Ok(()));
    tokio::time::advance(Duration::from_secs(2)).await;
    assert!(!hold.is_held());
    assert_eq!(hold.loss(), None);
    assert!(!token.is_cancelled());
}

#[tokio::test]
async fn the_last_guard_is_last() {
    let hold = hold(Duration::from_secs(1));
    assert!(hold.share());
    assert!(!hold.unshare());
    assert!(hold.unshare());
    assert!(!hold.share(), "nobody joins a hold that is being released");
}

#[tokio::test(start_paused = true)]
async fn a_doubted_hold_is_believed_in_again_once_a_later_renewal_confirms_it() {
    let ttl = Duration::from_secs(30);
    let hold = hold(ttl);
    let before = Clock::Tokio.now();
    tokio::time::advance(Duration::from_secs(1)).await;
    let now = Clock::Tokio.now();
    hold.doubt(now);
    assert!(!hold.is_held(), "the service may have forgotten it");
    assert_eq!(hold.loss(), None, "but nobody knows yet");
    hold.renewed(before, ttl);
    assert!(hold.is_doubted(), "that was sent before the doubt");
    hold.renewed(now, ttl);
    assert!(hold.is_held());
}
