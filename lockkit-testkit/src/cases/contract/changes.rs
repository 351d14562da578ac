//! Holds that change, and several at once.

use std::sync::Arc;

use lockkit_core::{Backend, Claim, Converted, Mode, Primitive, Together};

use super::{hold, release};
use crate::cases::topic;
use crate::failure::ensure;
use crate::fixture::{mutex, resource};
use crate::{Failure, Fixture, Outcome};

topic! { "contract":
    a_conversion_repeated_is_the_same [ReadWrite],
    what_is_gone_is_not_converted [ReadWrite],
    several_are_held_at_once_or_none_is,
    holding_several_at_once_again_is_the_same_grants [Fences],
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
        let snapshot = a.inspect(&claim.resource).await?;
        ensure!(snapshot.is_idle(), "something is left: {snapshot:?}");
    }
    Ok(())
}
