//! The rules of the SPI, asked of the backend itself.

mod changes;
mod claims;
mod kinds;
mod renewals;

use std::sync::Arc;

use lockkit_core::{Attempt, Backend, Claim, Fence, Grant, HoldId, Released, Renewal};

use crate::failure::ensure;
use crate::{Case, Failure, Outcome};

pub(super) fn cases() -> Vec<Case> {
    [
        claims::cases(),
        renewals::cases(),
        kinds::cases(),
        changes::cases(),
    ]
    .concat()
}

pub(in crate::cases) async fn attempt(
    backend: &Arc<dyn Backend>,
    claim: &Claim,
) -> Outcome<Attempt> {
    Ok(backend.enter(claim.clone())?.attempt().await?)
}

pub(in crate::cases) async fn hold(backend: &Arc<dyn Backend>, claim: &Claim) -> Outcome<Grant> {
    match attempt(backend, claim).await? {
        Attempt::Held(grant) => Ok(grant),
        Attempt::Busy { .. } => Err(Failure::new(format!("{claim:?} is not free"))),
    }
}

pub(in crate::cases) async fn release(
    backend: &Arc<dyn Backend>,
    id: &HoldId,
) -> Outcome<Released> {
    one(backend.release(std::slice::from_ref(id)).await)?.map_err(Into::into)
}

pub(in crate::cases) async fn renew(backend: &Arc<dyn Backend>, id: &HoldId) -> Outcome<Renewal> {
    one(backend.renew(std::slice::from_ref(id)).await)
}

fn one<T>(mut answers: Vec<T>) -> Outcome<T> {
    ensure!(answers.len() == 1, "{} answers for one id", answers.len());
    answers.pop().ok_or_else(|| Failure::new("no answer"))
}

/// Whether `grant` is what the service says about its holder, and the only one.
pub(in crate::cases) async fn only_holder(
    backend: &Arc<dyn Backend>,
    claim: &Claim,
    fence: Fence,
) -> Outcome {
    let snapshot = backend.inspect(&claim.resource).await?;
    let [holder] = &snapshot.holders[..] else {
        return Err(Failure::new(format!("not one holder: {snapshot:?}")));
    };
    ensure!(
        holder.id == claim.id(),
        "somebody else holds it: {snapshot:?}"
    );
    ensure!(
        holder.fence == fence,
        "held with another fence than {fence}: {snapshot:?}"
    );
    Ok(())
}
