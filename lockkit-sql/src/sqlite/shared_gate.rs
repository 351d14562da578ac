//! Attempts at what several may hold, and at latches.

use lockkit_core::{Attempt, Clock, Mode, Primitive};

use super::connection::Connection;
use super::error::Fault;
use super::gate::{Ask, Found};
use super::hall::{Hall, Owner, Stand};
use super::outlook::Outlook;
use super::session::{millis, remaining, ttl_ms};
use super::transaction::Transaction;

impl Connection {
    /// Tries to hold: by reading where that is enough, by a transaction otherwise.
    pub(super) async fn attempt_shared(&mut self, ask: &Ask) -> Result<Attempt, Fault> {
        let is_latch = ask.claim.resource.primitive() == Primitive::Latch;
        let mut found = Found::Unclear;
        if ask.again || ask.waiting.is_none() || is_latch {
            found = self.look_shared(ask).await?;
        }
        if matches!(found, Found::Unclear) {
            let mut transaction = self.begin().await?;
            let decided = decide(&mut transaction, ask).await;
            found = transaction.end(decided).await?;
        }
        Ok(self.note(ask, found))
    }

    /// What can be told by reading alone; nothing if anybody in the way is dead.
    pub(super) async fn look_shared(&mut self, ask: &Ask) -> Result<Found, Fault> {
        let Ask { claim, key, .. } = ask;
        let shared = self.shared();
        let session = shared.registry.session(ttl_ms(claim.ttl));
        let sql = self.read().await?;
        // First of all: what happens to it from now on is told by its bell, so whatever else is
        // read may be newer, never older.
        let place = ask.place(sql).await?;
        let Some(hall) = Hall::read(sql, key).await? else {
            return Ok(Found::Unclear);
        };
        let now_ms = millis(Clock::Boot.now());
        if let Some(held) = hall.find(claim.attempt) {
            let session = session.filter(|session| {
                matches!(held.owner, Owner::Session(Some(id), Some(_)) if id == session.id)
                    && !session.is_over()
            });
            return Ok(session.map_or(Found::Unclear, |session| {
                Found::Held(
                    session,
                    held.fence,
                    segment(&hall, held.kind.mode(hall.size)),
                )
            }));
        }
        let is_over = |owner: Owner| match owner {
            Owner::Session(Some(id), until) => shared.is_dead(id, until, now_ms),
            Owner::Session(None, _) => true,
            Owner::Detached(until) => until <= now_ms,
        };
        let mut owners: Vec<Owner> = hall.holds.iter().map(|held| held.owner).collect();
        owners.dedup();
        if owners.into_iter().any(is_over) {
            return Ok(Found::Unclear);
        }
        let outlook = Outlook::read(sql, &hall, ask, place).await?;
        if claim.resource.primitive() == Primitive::Latch {
            return Ok(match (&outlook.place, hall.is_open()) {
                (None, true) => Found::Passed,
                // The place stays until it is released: if this answer is lost, the next one says
                // the same, though the latch may have been set anew.
                (Some(place), _) if place.passed => Found::Passed,
                (None, false) if ask.waiting.is_none() => Found::Busy {
                    until: None,
                    place: None,
                },
                (Some(_), false) => outlook.busy(&hall, session),
                _ => Found::Unclear,
            });
        }
        let is_dead = |stand: &Stand| is_over(Owner::Session(stand.session, stand.until));
        if outlook.others().any(is_dead) {
            return Ok(Found::Unclear);
        }
        Ok(match outlook.entry(&hall, ask)? {
            Some(_) => Found::Unclear,
            None if ask.waiting.is_none() => Found::Busy {
                until: hall.until(),
                place: None,
            },
            None => outlook.busy(&hall, session),
        })
    }
}

/// The whole decision, with nobody else writing.
pub(super) async fn decide(transaction: &mut Transaction<'_>, ask: &Ask) -> Result<Found, Fault> {
    let Ask { claim, key, .. } = ask;
    let primitive = claim.resource.primitive();
    let session = transaction.session(ttl_ms(claim.ttl)).await?;
    if primitive == Primitive::Latch {
        transaction.clear_latch(key).await?;
    }
    loop {
        let Some(mut hall) = transaction.hall(key, primitive).await? else {
            transaction.insert_lock(key).await?;
            continue;
        };
        if let Some(held) = hall.find(claim.attempt) {
            let (fence, mode) = (held.fence, held.kind.mode(hall.size));
            if let Owner::Session(owner, _) = held.owner
                && owner != Some(session.id)
            {
                // Another session of this process; the claim goes on under the current one.
                let adopt =
                    "UPDATE lockkit_holder SET session = ?3 WHERE key = ?1 AND attempt = ?2";
                sqlx::query(adopt)
                    .bind(&**key)
                    .bind(claim.attempt.as_bytes().as_slice())
                    .bind(session.id.as_bytes())
                    .execute(&mut *transaction.sql)
                    .await?;
            }
            let segment = segment(&hall, mode);
            return Ok(Found::Held(session, fence, segment));
        }
        let place = match hall.queued {
            0 => None,
            _ => ask.place(transaction.sql).await?,
        };
        let mut outlook = Outlook::read(transaction.sql, &hall, ask, place).await?;
        if let Some(place) = &outlook.place {
            if place.passed {
                return Ok(Found::Passed);
            }
            if place.session != Some(session.id) {
                // Of a session that is over. Others may have waited behind it.
                transaction.strike(key, place.ticket).await?;
                hall.queued -= 1;
                transaction.tell_next(key, place.ticket).await?;
                transaction.advance(key, primitive, &mut hall).await?;
                continue;
            }
        }
        if primitive == Primitive::Latch {
            if hall.is_open() {
                return Ok(Found::Passed);
            }
        } else {
            if strike_dead(transaction, key, &outlook, &mut hall).await? {
                transaction.advance(key, primitive, &mut hall).await?;
                continue;
            }
            if let Some(mode) = outlook.entry(&hall, ask)? {
                let is_followed = hall.sessions().contains(&session.id);
                let fence = transaction
                    .admit(key, claim, mode, &session, &mut hall)
                    .await?;
                if let Some(place) = &outlook.place {
                    transaction.strike(key, place.ticket).await?;
                    hall.queued -= 1;
                }
                // It may leave room for the next in line as well.
                transaction.advance(key, primitive, &mut hall).await?;
                if hall.queued > 0 && !is_followed {
                    // It came past whoever is first in line, who has one more to watch.
                    transaction.tell_next(key, -1).await?;
                }
                return Ok(Found::Held(session, fence, mode.segment()));
            }
        }
        if ask.waiting.is_none() {
            return Ok(Found::Busy {
                until: hall.until(),
                place: None,
            });
        }
        if outlook.place.is_none() {
            let ticket = hall.next_ticket;
            transaction.enqueue(key, ticket, claim, &session).await?;
            if hall.size.is_none() && claim.mode.size().is_some() {
                transaction.set_stored_size(key, claim.mode.size()).await?;
            }
            outlook.place = Stand::of(transaction.sql, key, claim.attempt, Some(ticket)).await?;
        }
        return Ok(outlook.busy(&hall, Some(session)));
    }
}

async fn strike_dead(
    transaction: &mut Transaction<'_>,
    key: &str,
    outlook: &Outlook,
    hall: &mut Hall,
) -> Result<bool, Fault> {
    let mut struck = Vec::new();
    for stand in outlook.others() {
        if !struck.contains(&stand.ticket)
            && transaction.bury_if_dead(stand.session, stand.until).await?
        {
            transaction.strike(key, stand.ticket).await?;
            hall.queued -= 1;
            struck.push(stand.ticket);
        }
    }
    Ok(!struck.is_empty())
}

/// Which segment a hold is of.
fn segment(hall: &Hall, mode: Mode) -> Option<u32> {
    hall.size.and_then(|_| mode.segment())
}

/// Whether a claim in line has reason to try again. A place moves up, and those before it change,
/// without its turn having come: then it only has others to watch. But if one of those ends much
/// sooner than was told, it has to be told when to look.
pub(super) async fn is_worth_it(connection: &mut Connection, ask: &Ask) -> Result<bool, Fault> {
    let told = ask
        .waiting
        .as_ref()
        .and_then(|waiting| waiting.place()?.until);
    let mut found = connection.look_shared(ask).await?;
    let Found::Busy {
        place: Some((_, place)),
        ..
    } = &mut found
    else {
        return Ok(true);
    };
    let is_sooner = ends_much_sooner(place.until, told);
    if !is_sooner {
        place.until = told;
    }
    let _: Attempt = connection.note(ask, found);
    Ok(is_sooner)
}

/// The beats of sessions move every end a little, which is nothing to wake anybody for.
fn ends_much_sooner(until: Option<i64>, told: Option<i64>) -> bool {
    let now_ms = millis(Clock::Boot.now());
    match (until, told) {
        (Some(until), Some(told)) => remaining(now_ms, until) * 2 < remaining(now_ms, told),
        (until, None) => until.is_some(),
        (None, _) => false,
    }
}
