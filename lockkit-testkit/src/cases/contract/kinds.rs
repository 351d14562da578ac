//! The same rules for every kind of hold that the backend claims to have.

use std::sync::Arc;
use std::time::Duration;

use lockkit_core::{Attempt, Backend, Claim, Mode, Pick, Primitive, Released, Renewal, Resource};

use super::{attempt, hold, release, renew};
use crate::cases::topic;
use crate::failure::ensure;
use crate::fixture::resource;
use crate::{Fixture, Outcome};

topic! { "contract":
    an_attempt_of_any_kind_repeated_is_the_same_grant [Fences],
    a_second_release_of_any_kind_frees_nobody,
    a_busy_try_of_any_kind_leaves_no_trace,
    a_hold_of_any_kind_that_is_gone_is_never_revived,
    holds_and_places_of_any_kind_are_renewed_in_the_order_asked,
    a_hold_of_any_kind_is_extended_and_then_lives_by_its_own_expiry,
}

/// A way to hold something, and one that is in its way.
struct Kind {
    resource: Resource,
    mode: Mode,
    blocker: Mode,
}

/// Those that the backend claims.
fn kinds(backend: &Arc<dyn Backend>) -> Outcome<Vec<Kind>> {
    let two = Mode::Permits { count: 2, limit: 3 };
    let segment = |pick| Mode::Segment { pick, of: 1 };
    let all = [
        (Primitive::Mutex, Mode::Exclusive, Mode::Exclusive),
        (Primitive::ReadWrite, Mode::Exclusive, Mode::Shared),
        (Primitive::ReadWrite, Mode::Shared, Mode::Exclusive),
        (Primitive::Semaphore, two, two),
        (
            Primitive::Segmented,
            segment(Pick::Any { prefer: 0 }),
            segment(Pick::Only(0)),
        ),
    ];
    let claimed = all
        .into_iter()
        .filter(|(primitive, ..)| backend.descriptor().supports(*primitive))
        .filter(|(primitive, ..)| *primitive != Primitive::Mutex || backend.descriptor().fair);
    claimed
        .map(|(primitive, mode, blocker)| {
            Ok(Kind {
                resource: resource(primitive, "n")?,
                mode,
                blocker,
            })
        })
        .collect()
}

impl Kind {
    fn claim(&self, f: &Fixture) -> Claim {
        f.claim_of(&self.resource, self.mode)
    }

    fn blocker(&self, f: &Fixture) -> Claim {
        f.claim_of(&self.resource, self.blocker)
    }
}

async fn is_idle(backend: &Arc<dyn Backend>, resource: &Resource) -> Outcome {
    let snapshot = backend.inspect(resource).await?;
    ensure!(snapshot.is_idle(), "something is left: {snapshot:?}");
    Ok(())
}

async fn an_attempt_of_any_kind_repeated_is_the_same_grant(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.backend().await?, f.backend().await?);
    for kind in kinds(&a)? {
        let claim = kind.claim(&f);
        let first = hold(&a, &claim).await?;
        for _ in 0..2 {
            // With another ticket, after a lost connection.
            let again = hold(&a, &claim).await?;
            ensure!(
                (again.fence, again.segment) == (first.fence, first.segment),
                "{claim:?} was granted twice: {first:?}, {again:?}"
            );
        }
        let holders = b.inspect(&kind.resource).await?.holders;
        ensure!(holders.len() == 1, "one claim, several holds: {holders:?}");
        release(&a, &claim.id()).await?;
        is_idle(&b, &kind.resource).await?;
    }
    Ok(())
}

async fn a_second_release_of_any_kind_frees_nobody(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.backend().await?, f.backend().await?);
    for kind in kinds(&a)? {
        let (first, second) = (kind.claim(&f), kind.claim(&f));
        hold(&a, &first).await?;
        ensure!(
            release(&a, &first.id()).await? == Released::Done,
            "{first:?} was not there"
        );
        hold(&b, &second).await?;
        for backend in [&a, &b] {
            ensure!(
                release(backend, &first.id()).await? == Released::NotHeld,
                "{first:?} was released twice"
            );
        }
        let holders = a.inspect(&kind.resource).await?.holders;
        ensure!(
            holders.len() == 1 && holders[0].id == second.id(),
            "somebody else's was freed: {holders:?}"
        );
        release(&b, &second.id()).await?;
        is_idle(&a, &kind.resource).await?;
    }
    Ok(())
}

async fn a_busy_try_of_any_kind_leaves_no_trace(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.backend().await?, f.backend().await?);
    for kind in kinds(&a)? {
        let blocker = kind.blocker(&f);
        hold(&a, &blocker).await?;
        let tried = Claim {
            wait: false,
            ..kind.claim(&f)
        };
        for backend in [&a, &b] {
            let outcome = attempt(backend, &tried).await?;
            ensure!(
                matches!(outcome, Attempt::Busy { .. }),
                "{tried:?} beside {blocker:?}"
            );
        }
        let snapshot = a.inspect(&kind.resource).await?;
        ensure!(
            snapshot.holders.len() == 1 && snapshot.waiters.is_empty(),
            "a try left something: {snapshot:?}"
        );
        release(&a, &blocker.id()).await?;
        is_idle(&b, &kind.resource).await?;
    }
    Ok(())
}

async fn a_hold_of_any_kind_that_is_gone_is_never_revived(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.backend().await?, f.backend().await?);
    for kind in kinds(&a)? {
        let brief = Claim {
            ttl: f.lease(),
            ..kind.claim(&f)
        };
        hold(&a, &brief).await?;
        tokio::time::sleep(f.lease() + Duration::from_millis(50)).await;
        let next = kind.blocker(&f);
        hold(&b, &next).await?;
        let gone = renew(&a, &brief.id()).await?;
        ensure!(matches!(gone, Renewal::Gone), "{brief:?} came back");
        let gone = a.extend(&brief.id(), f.long()).await;
        ensure!(matches!(gone, Renewal::Gone), "{brief:?} came back");
        let holders = a.inspect(&kind.resource).await?.holders;
        ensure!(
            holders.len() == 1 && holders[0].id == next.id(),
            "not the one that holds: {holders:?}"
        );
        release(&b, &next.id()).await?;
        is_idle(&a, &kind.resource).await?;
    }
    Ok(())
}

async fn holds_and_places_of_any_kind_are_renewed_in_the_order_asked(f: Arc<Fixture>) -> Outcome {
    let a = f.backend().await?;
    for kind in kinds(&a)? {
        let (holder, waiter) = (kind.blocker(&f), kind.claim(&f));
        hold(&a, &holder).await?;
        let busy = attempt(&a, &waiter).await?;
        ensure!(matches!(busy, Attempt::Busy { .. }), "beside {holder:?}");
        let ids = [waiter.id(), kind.claim(&f).id(), holder.id()];
        let renewed: Vec<bool> = (a.renew(&ids).await.iter())
            .map(|renewal| matches!(renewal, Renewal::Renewed { .. }))
            .collect();
        ensure!(
            renewed == [true, false, true],
            "place, stranger, hold: renewed {renewed:?}"
        );
        let released: Vec<Released> = (a.release(&ids).await)
            .into_iter()
            .collect::<Result<_, _>>()?;
        let expected = [Released::Done, Released::NotHeld, Released::Done];
        ensure!(
            released == expected,
            "place, stranger, hold: released {released:?}"
        );
        is_idle(&a, &kind.resource).await?;
    }
    Ok(())
}

async fn a_hold_of_any_kind_is_extended_and_then_lives_by_its_own_expiry(
    f: Arc<Fixture>,
) -> Outcome {
    let (a, b) = (f.backend().await?, f.backend().await?);
    for kind in kinds(&a)? {
        let (claim, next) = (kind.claim(&f), kind.blocker(&f));
        hold(&a, &claim).await?;
        for ttl in [f.long(), f.lease()] {
            let extended = b.extend(&claim.id(), ttl).await;
            ensure!(
                matches!(extended, Renewal::Renewed { .. }),
                "{claim:?} was not extended: {extended:?}"
            );
            let holders = a.inspect(&kind.resource).await?.holders;
            ensure!(
                holders.len() == 1 && holders[0].detached && holders[0].remaining <= ttl,
                "not extended to {ttl:?}: {holders:?}"
            );
        }
        tokio::time::sleep(f.lease() + Duration::from_millis(50)).await;
        hold(&b, &next).await?;
        release(&b, &next.id()).await?;
        let late = release(&a, &claim.id()).await?;
        ensure!(late == Released::NotHeld, "released what had run out");
    }
    Ok(())
}
