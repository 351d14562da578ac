//! Several at once: all, or none.

use std::sync::Arc;

use lockkit_core::{Attempt, Claim, Primitive, Together};

use super::connection::Connection;
use super::error::Fault;
use super::gate::{self, Ask, Found};
use super::shared_gate;
use super::transaction::Transaction;

impl Connection {
    /// See [`Backend::attempt_all`](lockkit_core::Backend::attempt_all).
    pub(super) async fn attempt_all(&mut self, claims: &[Claim]) -> Result<Together, Fault> {
        let asks: Vec<Ask> = claims.iter().map(ask).collect();
        for ask in &asks {
            let found = match ask.claim.resource.primitive() {
                Primitive::Mutex => self.look(ask).await?,
                _ => self.look_shared(ask).await?,
            };
            if matches!(found, Found::Busy { .. }) {
                return Ok(Together::Busy);
            }
        }
        let mut transaction = self.begin().await?;
        let decided = decide_all(&mut transaction, &asks).await;
        if !matches!(decided, Ok(Some(_))) {
            transaction.undo();
        }
        let Some(found) = transaction.end(decided).await? else {
            return Ok(Together::Busy);
        };
        let mut grants = Vec::with_capacity(found.len());
        for (ask, found) in asks.iter().zip(found) {
            if let Attempt::Held(grant) = self.note(ask, found) {
                grants.push(grant);
            }
        }
        Ok(Together::Held(grants))
    }
}

fn ask(claim: &Claim) -> Ask {
    Ask {
        claim: Arc::new(claim.clone()),
        key: claim.resource.key().into(),
        waiting: None,
        again: true,
    }
}

/// What each would get; `None` if one of them is busy.
async fn decide_all(
    transaction: &mut Transaction<'_>,
    asks: &[Ask],
) -> Result<Option<Vec<Found>>, Fault> {
    let mut all = Vec::with_capacity(asks.len());
    for ask in asks {
        let found = match ask.claim.resource.primitive() {
            Primitive::Mutex => gate::decide(transaction, ask).await?,
            _ => shared_gate::decide(transaction, ask).await?,
        };
        match found {
            Found::Held(..) | Found::Passed => all.push(found),
            Found::Busy { .. } | Found::Unclear => return Ok(None),
        }
    }
    Ok(Some(all))
}
