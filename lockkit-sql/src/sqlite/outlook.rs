//! A claim's outlook: where it stands, who stands before it, and how it would enter.

use std::sync::Arc;

use lockkit_core::{Mode, Order, Primitive, admission};
use sqlx::SqliteConnection;

use super::error::Fault;
use super::gate::{Ask, Found};
use super::hall::{Hall, Stand};
use super::registry::Place;
use super::session::Session;

/// Everything about a claim's turn that can be read.
pub(super) struct Outlook {
    pub(super) place: Option<Stand>,
    /// Whoever is next before it in line.
    pub(super) nearest: Option<Stand>,
    /// Those before it who decide about it.
    pub(super) before: Vec<Stand>,
}

impl Ask {
    /// Its place in line, if it may have one.
    pub(super) async fn place(&self, sql: &mut SqliteConnection) -> Result<Option<Stand>, Fault> {
        if !self.again || self.waiting.is_none() {
            return Ok(None);
        }
        Stand::of(sql, &self.key, self.claim.attempt, self.ticket()).await
    }
}

impl Outlook {
    /// Reads no more of the line than decides.
    pub(super) async fn read(
        sql: &mut SqliteConnection,
        hall: &Hall,
        ask: &Ask,
        place: Option<Stand>,
    ) -> Result<Self, Fault> {
        let Ask { claim, key, .. } = ask;
        let mut outlook = Self {
            place,
            nearest: None,
            before: Vec::new(),
        };
        if hall.queued == 0 {
            return Ok(outlook);
        }
        if claim.resource.primitive() == Primitive::Latch {
            return Ok(outlook);
        }
        let below = outlook
            .place
            .as_ref()
            .map_or(i64::MAX, |place| place.ticket);
        if ask.waiting.is_some() {
            outlook.nearest = Stand::nearest(sql, key, below).await?;
        }
        let passes = outlook.place.is_none() && claim.order == Order::Barging;
        if !passes && admission::fits(mode_now(hall, claim.mode), &hall.modes()).is_some() {
            let decide = match claim.mode {
                Mode::Segment { .. } => i64::MAX,
                _ => 1,
            };
            outlook.before = Stand::line(sql, key, below, decide).await?;
        }
        Ok(outlook)
    }

    pub(super) fn others(&self) -> impl Iterator<Item = &Stand> {
        self.before.iter().chain(&self.nearest)
    }

    /// How the claim would enter now.
    pub(super) fn entry(&self, hall: &Hall, ask: &Ask) -> Result<Option<Mode>, Fault> {
        let claim = &ask.claim;
        if let Some(size) = hall.size {
            match self.place {
                None => claim.mode.check_size(size)?,
                Some(_) => claim.mode.check_fits(size)?,
            }
        }
        let order = match self.place {
            None => claim.order,
            Some(_) => Order::Fair,
        };
        let before = self.before.iter().map(|stand| stand.kind.mode(hall.size));
        let mode = mode_now(hall, claim.mode);
        Ok(admission::enters(mode, order, &hall.modes(), before))
    }

    pub(super) fn busy(&self, hall: &Hall, session: Option<Arc<Session>>) -> Found {
        let (Some(session), Some(place)) = (session, &self.place) else {
            return Found::Unclear;
        };
        if place.session != Some(session.id) {
            return Found::Unclear;
        }
        let nearest = self.nearest.as_ref();
        let behind = match nearest {
            Some(nearest) => nearest.session.into_iter().collect(),
            None => hall.sessions(),
        };
        let until = nearest.and_then(|nearest| nearest.until);
        let until = hall.until().into_iter().chain(until).min();
        let place = Place {
            ticket: place.ticket,
            rung: place.rung,
            behind,
            until,
        };
        Found::Busy {
            until,
            place: Some((session, place)),
        }
    }
}

/// A claim's mode, for the size that the name has now.
fn mode_now(hall: &Hall, mode: Mode) -> Mode {
    hall.size.map_or(mode, |size| mode.resized(size))
}
