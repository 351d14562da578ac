//! Renewals: in order, from the sending, and never of what is gone.

use std::sync::Arc;
use std::time::Duration;

use lockkit_core::{Attempt, Backend, Claim, Released, Renewal};

use super::{attempt, hold, only_holder, release, renew};
use crate::cases::topic;
use crate::failure::ensure;
use crate::{Failure, Fixture, Outcome};

topic! { "contract":
    renewals_and_releases_are_answered_in_the_order_asked,
    a_renewal_never_revives_what_was_released,
    a_renewal_never_revives_what_ran_out,
    the_lease_counts_from_the_sending_and_not_from_the_reply,
    a_place_in_line_is_renewed_like_a_hold [Line],
}

async fn renewals_and_releases_are_answered_in_the_order_asked(f: Arc<Fixture>) -> Outcome {
    let backend = f.backend().await?;
    let (a, b) = (f.claim("a", false)?, f.claim("b", false)?);
    hold(&backend, &a).await?;
    hold(&backend, &b).await?;
    let unknown = f.claim("a", false)?.id();
    let ids = [b.id(), unknown, a.id()];

    let renewed: Vec<bool> = (backend.renew(&ids).await.iter())
        .map(|renewal| matches!(renewal, Renewal::Renewed { .. }))
        .collect();
    ensure!(
        renewed == [true, false, true],
        "b, stranger, a: renewed {renewed:?}"
    );

    let released: Vec<Released> = backend
        .release(&ids)
        .await
        .into_iter()
        .collect::<Result<_, _>>()?;
    let expected = [Released::Done, Released::NotHeld, Released::Done];
    ensure!(
        released == expected,
        "b, stranger, a: released {released:?}"
    );
    ensure!(
        backend.renew(&[]).await.is_empty(),
        "answers without a question"
    );
    ensure!(
        backend.release(&[]).await.is_empty(),
        "answers without a question"
    );
    Ok(())
}

async fn a_renewal_never_revives_what_was_released(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.backend().await?, f.backend().await?);
    let claim = f.claim("n", false)?;
    hold(&a, &claim).await?;
    release(&a, &claim.id()).await?;
    stays_gone(&a, &b, &claim).await
}

async fn a_renewal_never_revives_what_ran_out(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.backend().await?, f.backend().await?);
    let claim = Claim {
        ttl: f.lease(),
        ..f.claim("n", false)?
    };
    let grant = hold(&a, &claim).await?;
    tokio::time::sleep(grant.ttl + Duration::from_millis(50)).await;
    let next = f.claim("n", false)?;
    let grant = hold(&b, &next).await?;
    let renewal = renew(&a, &claim.id()).await?;
    ensure!(
        matches!(renewal, Renewal::Gone),
        "renewed beside another holder: {renewal:?}"
    );
    only_holder(&a, &next, grant.fence).await?;
    release(&b, &next.id()).await?;
    stays_gone(&a, &b, &claim).await
}

async fn stays_gone(a: &Arc<dyn Backend>, b: &Arc<dyn Backend>, claim: &Claim) -> Outcome {
    for _ in 0..3 {
        for backend in [a, b] {
            let renewal = renew(backend, &claim.id()).await?;
            ensure!(
                matches!(renewal, Renewal::Gone),
                "a hold came back: {renewal:?}"
            );
            let extended = backend.extend(&claim.id(), claim.ttl).await;
            ensure!(
                matches!(extended, Renewal::Gone),
                "a hold came back: {extended:?}"
            );
        }
        let snapshot = a.inspect(&claim.resource).await?;
        ensure!(snapshot.is_idle(), "a hold came back: {snapshot:?}");
    }
    Ok(())
}

async fn the_lease_counts_from_the_sending_and_not_from_the_reply(f: Arc<Fixture>) -> Outcome {
    let backend = f.backend().await?;
    let clock = backend.descriptor().clock;
    // Where in the call the instant lies; nothing tells a single call apart, many do.
    let mut late = 0;
    let mut calls = 0;
    for i in 0..15 {
        let claim = f.claim(&format!("n{i}"), false)?;
        let before = clock.now();
        let grant = hold(&backend, &claim).await?;
        let between = clock.now();
        let renewal = renew(&backend, &claim.id()).await?;
        let after = clock.now();
        let Renewal::Renewed { sent_at, .. } = renewal else {
            return Err(Failure::new(format!("not renewed: {renewal:?}")));
        };
        for (before, sent_at, after) in
            [(before, grant.sent_at, between), (between, sent_at, after)]
        {
            ensure!(sent_at <= after, "sent after the reply");
            let until_sent = sent_at.saturating_duration_since(before);
            let in_all = after.saturating_duration_since(before);
            late += usize::from(!in_all.is_zero() && until_sent * 2 > in_all);
            calls += 1;
        }
        release(&backend, &claim.id()).await?;
    }
    ensure!(
        late * 2 < calls,
        "{late} of {calls} leases count from nearer the reply"
    );
    Ok(())
}

async fn a_place_in_line_is_renewed_like_a_hold(f: Arc<Fixture>) -> Outcome {
    let (a, b) = (f.backend().await?, f.backend().await?);
    let holder = f.claim("n", true)?;
    let waiter = Claim {
        ttl: f.lease(),
        ..f.claim("n", true)?
    };
    hold(&a, &holder).await?;
    ensure!(
        matches!(attempt(&b, &waiter).await?, Attempt::Busy { .. }),
        "two holders"
    );
    for _ in 0..4 {
        tokio::time::sleep(f.lease() / 2).await;
        // The holder's session has to live on as well.
        renew(&a, &holder.id()).await?;
        let renewal = renew(&b, &waiter.id()).await?;
        ensure!(
            matches!(renewal, Renewal::Renewed { .. }),
            "the place is gone: {renewal:?}"
        );
    }
    let waiters = a.inspect(&holder.resource).await?.waiters;
    ensure!(waiters.len() == 1, "the place was not kept: {waiters:?}");
    release(&b, &waiter.id()).await?;
    release(&a, &holder.id()).await?;
    Ok(())
}
