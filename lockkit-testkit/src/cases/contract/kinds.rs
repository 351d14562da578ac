//! The same rules for every kind of hold that the backend claims to have.

use std::sync::Arc;
use std::time::Duration;

use lockkit_core::{
    Attempt, Backend, Claim, Converted, Mode, Pick, Primitive, Released, Renewal, Resource,
    Together,
};

use super::{attempt, hold, release, renew};
use crate::cases::topic;
use crate::failure::ensure;
use crate::fixture::{mutex, resource};
use crate::{Failure, Fixture, Outcome};

topic! { "contract":
    an_attempt_of_any_kind_repeated_is_the_same_grant [Fences],
    a_second_release_of_any_kind_frees_nobody,
    a_busy_try_of_any_kind_leaves_no_trace,
    a_hold_of_any_kind_that_is_gone_is_never_revived,
    holds_and_places_of_any_kind_are_renewed_in_the_order_asked,
    a_hold_of_any_kind_is_extended_and_then_lives_by_its_own_expiry,
    a_conversion_repeated_is_the_same [ReadWrite],
    what_is_gone_is_not_converted [ReadWrite],
    several_are_held_at_once_or_none_is,
    holding_several_at_once_again_is_the_same_grants [Fences],
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

async fn converts(backend: &Arc<dyn Backend>, claim: &Claim, mode: Mode) -> Outcome<Converted> {
    Ok(backend.convert(&claim.id(), mode).await?)
}

async fn a_conversion_repeated_is_the_same(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.backend().await?, f.backend().await?);
    let rw = resource(Primitive::ReadWrite, "n")?;
    let claim = f.claim_of(&rw, Mode::Exclusive);
    let grant = hold(&a, &claim).await?;
    for _ in 0..3 {
        let down = converts(&a, &claim, Mode::Shared).await?;
        ensure!(down == Converted::Done(grant.fence), "{down:?}");
    }
    let up = converts(&a, &claim, Mode::Exclusive).await?;
    ensure!(matches!(up, Converted::Done(_)), "{up:?} although alone");
    let again = converts(&b, &claim, Mode::Exclusive).await?;
    ensure!(again == up, "{again:?} after {up:?}");
    release(&a, &claim.id()).await?;
    Ok(())
}

async fn what_is_gone_is_not_converted(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.backend().await?, f.backend().await?);
    let rw = resource(Primitive::ReadWrite, "n")?;
    let (gone, next) = (
        f.claim_of(&rw, Mode::Exclusive),
        f.claim_of(&rw, Mode::Shared),
    );
    hold(&a, &gone).await?;
    release(&a, &gone.id()).await?;
    hold(&b, &next).await?;
    for mode in [Mode::Shared, Mode::Exclusive] {
        let outcome = converts(&a, &gone, mode).await?;
        ensure!(outcome == Converted::NotHeld, "{outcome:?}");
    }
    let holders = a.inspect(&rw).await?.holders;
    ensure!(
        holders.len() == 1 && holders[0].id == next.id(),
        "{holders:?}"
    );
    release(&b, &next.id()).await?;
    Ok(())
}

fn several(f: &Fixture) -> Outcome<[Claim; 3]> {
    Ok([
        f.claim("x", false)?,
        f.claim("y", false)?,
        f.claim("z", false)?,
    ])
}

async fn several_are_held_at_once_or_none_is(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.backend().await?, f.backend().await?);
    for name in ["x", "y", "z"] {
        let busy = f.claim(name, false)?;
        hold(&b, &busy).await?;
        let claims = several(&f)?;
        match a.attempt_all(&claims).await? {
            // Then core takes one after the other.
            Together::OneByOne => {
                release(&b, &busy.id()).await?;
                return Ok(());
            }
            Together::Busy => {}
            held @ Together::Held(_) => {
                return Err(Failure::new(format!("{name} has two holders: {held:?}")));
            }
        }
        for other in ["x", "y", "z"] {
            let snapshot = b.inspect(&mutex(other)?).await?;
            ensure!(
                snapshot.holders.len() == usize::from(other == name),
                "{name} is busy, and {other} was taken: {snapshot:?}"
            );
            ensure!(snapshot.waiters.is_empty(), "somebody waits: {snapshot:?}");
        }
        release(&b, &busy.id()).await?;
    }
    let claims = several(&f)?;
    let held = a.attempt_all(&claims).await?;
    ensure!(
        matches!(&held, Together::Held(grants) if grants.len() == claims.len()),
        "all are free: {held:?}"
    );
    for claim in &claims {
        let holders = b.inspect(&claim.resource).await?.holders;
        ensure!(
            holders.len() == 1 && holders[0].id == claim.id(),
            "not the one that holds: {holders:?}"
        );
        release(&a, &claim.id()).await?;
    }
    Ok(())
}

async fn holding_several_at_once_again_is_the_same_grants(f: Arc<Fixture>) -> Outcome {
    let a = f.backend().await?;
    let claims = several(&f)?;
    // After a lost reply.
    let fences = |outcome: Together| match outcome {
        Together::Held(grants) => Ok(grants.iter().map(|g| g.fence).collect::<Vec<_>>()),
        Together::OneByOne => Ok(Vec::new()),
        Together::Busy => Err(Failure::new("in its own way")),
    };
    let first = fences(a.attempt_all(&claims).await?)?;
    for _ in 0..2 {
        let again = fences(a.attempt_all(&claims).await?)?;
        ensure!(again == first, "granted twice: {first:?}, {again:?}");
    }
    for claim in &claims {
        release(&a, &claim.id()).await?;
        is_idle(&a, &claim.resource).await?;
    }
    Ok(())
}
