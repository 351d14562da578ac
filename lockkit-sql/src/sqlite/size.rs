//! How many permits or segments there are.

use lockkit_core::{Primitive, Resource};

use super::connection::Connection;
use super::error::Fault;
use super::hall::Stand;
use super::transaction::Transaction;

const TOO_MUCH: &str = "
UPDATE lockkit_waiter SET rung = rung + 1 WHERE key = ?1 AND ticket = ?2";

impl Connection {
    /// See [`Backend::set_size`](lockkit_core::Backend::set_size).
    pub(super) async fn set_size(&mut self, resource: &Resource, size: u32) -> Result<bool, Fault> {
        let mut transaction = self.begin().await?;
        let set = set_size(&mut transaction, resource, size).await;
        transaction.end(set).await
    }
}

async fn set_size(
    transaction: &mut Transaction<'_>,
    resource: &Resource,
    size: u32,
) -> Result<bool, Fault> {
    let (key, primitive) = (resource.key(), resource.primitive());
    let mut hall = loop {
        match transaction.hall(&key, primitive).await? {
            Some(hall) => break hall,
            None => transaction.insert_lock(&key).await?,
        }
    };
    let mut line = Vec::new();
    for stand in Stand::line(transaction.sql, &key, i64::MAX, i64::MAX).await? {
        if transaction.bury_if_dead(stand.session, stand.until).await? {
            transaction.strike(&key, stand.ticket).await?;
            hall.queued -= 1;
        } else {
            line.push(stand);
        }
    }
    if primitive == Primitive::Segmented && !(hall.holds.is_empty() && line.is_empty()) {
        return Ok(false);
    }
    transaction.set_stored_size(&key, Some(size)).await?;
    hall.size = Some(size);
    for stand in line {
        if stand.kind.mode(hall.size).check_fits(size).is_err() {
            // To be told by its next attempt.
            sqlx::query(TOO_MUCH)
                .bind(&key)
                .bind(stand.ticket)
                .execute(&mut *transaction.sql)
                .await?;
            if let (Some(session), Some(attempt)) = (stand.session, stand.attempt) {
                transaction.ring(session, attempt);
            }
        }
    }
    transaction.advance(&key, primitive, &mut hall).await?;
    Ok(true)
}

impl Transaction<'_> {
    pub(super) async fn set_stored_size(
        &mut self,
        key: &str,
        size: Option<u32>,
    ) -> Result<(), Fault> {
        sqlx::query("UPDATE lockkit_lock SET size = ?2 WHERE key = ?1")
            .bind(key)
            .bind(size)
            .execute(&mut *self.sql)
            .await?;
        Ok(())
    }
}
