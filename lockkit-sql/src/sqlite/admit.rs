//! Changes to a name that may have several holders, inside a transaction.

use lockkit_core::admission::{self, Standing, Turn};
use lockkit_core::{AttemptId, Claim, Mode, Order, Primitive};

use super::error::Fault;
use super::hall::{Hall, Held, Owner, Stand};
use super::kind::Kind;
use super::session::Session;
use super::transaction::Transaction;

/// How much of a line is read at first, to find out who comes next.
const PAGE: i64 = 16;

const FROM_LINE: &str = "
INSERT INTO lockkit_holder (key, attempt, session, mode, amount, fence, since, label)
SELECT key, attempt, session, ?3, ?4, ?5, ?6, label FROM lockkit_waiter
 WHERE key = ?1 AND ticket = ?2;
DELETE FROM lockkit_waiter WHERE key = ?1 AND ticket = ?2";

impl Transaction<'_> {
    /// The state of a name, without the holds of the dead. Whoever comes next after those is let in.
    pub(super) async fn hall(
        &mut self,
        key: &str,
        primitive: Primitive,
    ) -> Result<Option<Hall>, Fault> {
        let Some(mut hall) = Hall::read(self.sql, key).await? else {
            return Ok(None);
        };
        let mut holds = Vec::with_capacity(hall.holds.len());
        let before = hall.holds.len();
        for held in std::mem::take(&mut hall.holds) {
            if self.is_over(&held).await? {
                self.end_hold(key, held.attempt).await?;
            } else {
                holds.push(held);
            }
        }
        hall.holds = holds;
        if hall.holds.len() < before {
            self.advance(key, primitive, &mut hall).await?;
        }
        Ok(Some(hall))
    }

    async fn is_over(&mut self, held: &Held) -> Result<bool, Fault> {
        match held.owner {
            Owner::Session(session, until) => self.bury_if_dead(session, until).await,
            Owner::Detached(until) => Ok(until <= self.now_ms()),
        }
    }

    /// Removes one hold.
    async fn end_hold(&mut self, key: &str, attempt: Option<AttemptId>) -> Result<(), Fault> {
        let attempt = attempt.as_ref().map(|id| id.as_bytes().as_slice());
        sqlx::query("DELETE FROM lockkit_holder WHERE key = ?1 AND attempt = ?2")
            .bind(key)
            .bind(attempt)
            .execute(&mut *self.sql)
            .await?;
        Ok(())
    }

    /// Lets in whoever may come next, at once and in order; rings those and, where others hold
    /// beside them, whoever is first in line now, because it has to watch all who hold.
    pub(super) async fn advance(
        &mut self,
        key: &str,
        primitive: Primitive,
        hall: &mut Hall,
    ) -> Result<(), Fault> {
        if hall.queued == 0 || primitive == Primitive::Latch {
            return Ok(());
        }
        let line = self.next(key, primitive, hall).await?;
        let first_fence = hall.fence;
        for (stand, mode) in &line {
            hall.fence += i64::from(*mode != Mode::Shared);
            let kind = Kind::of(*mode);
            sqlx::query(FROM_LINE)
                .bind(key)
                .bind(stand.ticket)
                .bind(kind.mode)
                .bind(kind.amount)
                .bind(hall.fence)
                .bind(self.now_ms())
                .execute(&mut *self.sql)
                .await?;
            hall.holds.push(Held {
                attempt: stand.attempt,
                owner: Owner::Session(stand.session, stand.until),
                kind,
                fence: hall.fence,
            });
            if let (Some(session), Some(attempt)) = (stand.session, stand.attempt) {
                self.ring(session, attempt);
            }
        }
        if line.is_empty() {
            return Ok(());
        }
        let admitted = i64::try_from(line.len()).unwrap_or(i64::MAX);
        hall.queued -= admitted;
        let count =
            "UPDATE lockkit_lock SET queued = queued - ?2, fence = fence + ?3 WHERE key = ?1";
        sqlx::query(count)
            .bind(key)
            .bind(admitted)
            .bind(hall.fence - first_fence)
            .execute(&mut *self.sql)
            .await?;
        if hall.queued > 0 && hall.sessions().len() > 1 {
            self.tell_next(key, -1).await?;
        }
        Ok(())
    }

    /// Who comes next, and how each would hold. Reads no more of the line than is needed to tell.
    async fn next(
        &mut self,
        key: &str,
        primitive: Primitive,
        hall: &mut Hall,
    ) -> Result<Vec<(Stand, Mode)>, Fault> {
        let holds = hall.modes();
        let mut limit = PAGE;
        loop {
            let page = Stand::line(self.sql, key, i64::MAX, limit).await?;
            let is_all = i64::try_from(page.len()).is_ok_and(|read| read < limit);
            let mut line = Vec::with_capacity(page.len());
            for stand in page {
                if self.bury_if_dead(stand.session, stand.until).await? {
                    self.strike(key, stand.ticket).await?;
                    hall.queued -= 1;
                } else {
                    line.push(stand);
                }
            }
            let standing = |stand: &Stand| Standing {
                mode: stand.kind.mode(hall.size),
                // Everybody is handed what is free: to offer it instead costs a second flush.
                order: Order::Fair,
                passed_over: false,
            };
            let turns = admission::turn(&holds, line.iter().map(standing));
            let is_full = match (primitive, hall.size) {
                (Primitive::Segmented, Some(of)) => {
                    u32::try_from(holds.len() + turns.len()).is_ok_and(|taken| taken >= of)
                }
                _ => turns.len() < line.len(),
            };
            if !is_all && !is_full {
                limit *= 4;
                continue;
            }
            let admitted = turns.into_iter().filter_map(|(place, turn)| match turn {
                Turn::HandOver(mode) => Some((line.get(place)?.clone(), mode)),
                Turn::Wake => None,
            });
            return Ok(admitted.collect());
        }
    }

    /// Gives a claim a hold beside the others; returns the fence.
    pub(super) async fn admit(
        &mut self,
        key: &str,
        claim: &Claim,
        mode: Mode,
        session: &Session,
        hall: &mut Hall,
    ) -> Result<i64, Fault> {
        let raises = mode != Mode::Shared;
        if raises || hall.size != mode.size() {
            let keep = "UPDATE lockkit_lock SET fence = fence + ?2, size = ?3 WHERE key = ?1";
            hall.fence += i64::from(raises);
            hall.size = mode.size();
            sqlx::query(keep)
                .bind(key)
                .bind(raises)
                .bind(hall.size)
                .execute(&mut *self.sql)
                .await?;
        }
        let kind = Kind::of(mode);
        let insert = "
            INSERT INTO lockkit_holder (key, attempt, session, mode, amount, fence, since, label)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        sqlx::query(insert)
            .bind(key)
            .bind(claim.attempt.as_bytes().as_slice())
            .bind(session.id.as_bytes())
            .bind(kind.mode)
            .bind(kind.amount)
            .bind(hall.fence)
            .bind(self.now_ms())
            .bind(claim.label.encode())
            .execute(&mut *self.sql)
            .await?;
        hall.holds.push(Held {
            attempt: Some(claim.attempt),
            owner: Owner::Session(Some(session.id), None),
            kind,
            fence: hall.fence,
        });
        Ok(hall.fence)
    }
}
