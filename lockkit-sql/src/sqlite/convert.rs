//! From exclusive to shared and back, in one step.

use lockkit_core::{Converted, Error, ErrorKind, Fence, HoldId, Mode};

use super::connection::Connection;
use super::descriptor::DRIVER;
use super::error::Fault;
use super::kind::Kind;
use super::transaction::Transaction;

const CONVERT: &str = "
UPDATE lockkit_holder SET mode = ?3, fence = ?4 WHERE key = ?1 AND attempt = ?2";

impl Connection {
    /// See [`Backend::convert`](lockkit_core::Backend::convert).
    pub(super) async fn convert(&mut self, id: &HoldId, mode: Mode) -> Result<Converted, Fault> {
        let mut transaction = self.begin().await?;
        let converted = convert(&mut transaction, id, mode).await;
        transaction.end(converted).await
    }
}

async fn convert(
    transaction: &mut Transaction<'_>,
    id: &HoldId,
    mode: Mode,
) -> Result<Converted, Fault> {
    let (key, primitive) = (id.resource().key(), id.resource().primitive());
    let Some(mut hall) = transaction.hall(&key, primitive).await? else {
        return Ok(Converted::NotHeld);
    };
    let found = hall
        .holds
        .iter()
        .position(|held| held.attempt == Some(id.attempt()));
    let Some(at) = found else {
        return Ok(Converted::NotHeld);
    };
    let before = hall.holds[at].kind.mode(hall.size);
    let fence = match (before, mode) {
        (before, after) if before == after => {
            return Ok(Converted::Done(fence(hall.holds[at].fence)));
        }
        (Mode::Exclusive, Mode::Shared) => hall.holds[at].fence,
        (Mode::Shared, Mode::Exclusive) => {
            // Takes the dead out of the line, who might hide that somebody else may enter.
            transaction.advance(&key, primitive, &mut hall).await?;
            if hall.holds.len() > 1 || hall.queued > 0 {
                return Ok(Converted::Busy);
            }
            let (fence,): (i64,) = sqlx::query_as(
                "UPDATE lockkit_lock SET fence = fence + 1 WHERE key = ?1 RETURNING fence",
            )
            .bind(&key)
            .fetch_one(&mut *transaction.sql)
            .await?;
            fence
        }
        (before, after) => {
            let message = format!("a hold that is {before} cannot become {after}");
            let error = Error::new(ErrorKind::InvalidArgument, message);
            return Err(error.on(DRIVER).into());
        }
    };
    let kind = Kind::of(mode);
    sqlx::query(CONVERT)
        .bind(&key)
        .bind(id.attempt().as_bytes().as_slice())
        .bind(kind.mode)
        .bind(fence)
        .execute(&mut *transaction.sql)
        .await?;
    hall.holds[at].kind = kind;
    hall.holds[at].fence = fence;
    transaction.advance(&key, primitive, &mut hall).await?;
    Ok(Converted::Done(self::fence(fence)))
}

const fn fence(stored: i64) -> Fence {
    Fence::new(stored.unsigned_abs())
}
