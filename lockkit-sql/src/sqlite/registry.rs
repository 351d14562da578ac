//! What this process has in the database: sessions, holds and places in line.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use lockkit_core::{AttemptId, HoldId};
use tokio::sync::Notify;

use super::files::SessionId;
use super::session::Session;
use super::shared::locked;

/// All of it, behind one lock that is never held across a wait.
#[derive(Debug, Default)]
pub(super) struct Registry(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The session for new holds, by lease time.
    current: HashMap<i64, Arc<Session>>,
    claims: HashMap<AttemptId, Entry>,
    waiting: usize,
}

#[derive(Debug)]
struct Entry {
    id: HoldId,
    session: Option<Arc<Session>>,
    waiting: Option<Arc<Waiting>>,
}

/// A claim that waits in this process.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub(super) changed: Notify,
    place: Mutex<Option<Place>>,
}

/// A place in line.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) ticket: i64,
    /// How often its bell had been rung when it was looked at last.
    pub(super) rung: i64,
    /// Whose death makes it worth to look: the session of whoever is next before it in line, or
    /// else of every holder, as far as they are other processes'.
    pub(super) behind: Vec<SessionId>,
    /// When the first of those who stand in the way ends, as far as it was told to who waits.
    pub(super) until: Option<i64>,
}

impl Waiting {
    pub(super) fn place(&self) -> Option<Place> {
        locked(&self.place).clone()
    }

    pub(super) fn stand(&self, place: Option<Place>) {
        *locked(&self.place) = place;
    }
}

impl Registry {
    pub(super) fn session(&self, ttl_ms: i64) -> Option<Arc<Session>> {
        locked(&self.0).current.get(&ttl_ms).cloned()
    }

    pub(super) fn sessions(&self) -> Vec<Arc<Session>> {
        locked(&self.0).current.values().cloned().collect()
    }

    pub(super) fn begin(&self, session: Arc<Session>) {
        locked(&self.0).current.insert(session.ttl_ms, session);
    }

    /// Takes out sessions that carry nothing and are past their use, once there are many: whoever
    /// computes his lease times has a session for each.
    pub(super) fn retire(&self) -> Vec<Arc<Session>> {
        const MANY: usize = 16;
        let mut state = locked(&self.0);
        if state.current.len() < MANY {
            return Vec::new();
        }
        let is_idle = |_: &i64, session: &mut Arc<Session>| {
            Arc::strong_count(session) == 1 && !session.is_fresh()
        };
        state
            .current
            .extract_if(is_idle)
            .map(|(_, session)| session)
            .collect()
    }

    pub(super) fn owns(&self, id: SessionId) -> bool {
        locked(&self.0)
            .current
            .values()
            .any(|session| session.id == id)
    }

    /// Ends a session: the holds that are gone with it, and those to wake because their places
    /// are gone.
    pub(super) fn end(&self, session: &Arc<Session>) -> (Vec<HoldId>, Vec<Arc<Waiting>>) {
        session.end();
        let mut state = locked(&self.0);
        if state
            .current
            .get(&session.ttl_ms)
            .is_some_and(|current| Arc::ptr_eq(current, session))
        {
            state.current.remove(&session.ttl_ms);
        }
        let mut waiting = Vec::new();
        let mut gone = Vec::new();
        state.claims.retain(|_, entry| {
            if !entry
                .session
                .as_ref()
                .is_some_and(|other| Arc::ptr_eq(other, session))
            {
                return true;
            }
            if let Some(waiter) = &entry.waiting {
                // It may enter again, under the next session.
                waiter.stand(None);
                waiting.push(Arc::clone(waiter));
                return true;
            }
            gone.push(entry.id.clone());
            false
        });
        (gone, waiting)
    }

    /// Announces a claim that may wait, before its first request.
    pub(super) fn announce(&self, id: HoldId) -> Arc<Waiting> {
        let waiting = Arc::new(Waiting::default());
        let entry = Entry {
            session: None,
            waiting: Some(Arc::clone(&waiting)),
            id,
        };
        let mut state = locked(&self.0);
        state.waiting += 1;
        state.claims.insert(entry.id.attempt(), entry);
        waiting
    }

    /// Notes the session under which an announced claim stands in line.
    pub(super) fn stand(&self, attempt: AttemptId, session: &Arc<Session>) {
        if let Some(entry) = locked(&self.0).claims.get_mut(&attempt) {
            entry.session = Some(Arc::clone(session));
        }
    }

    /// Notes a grant.
    pub(super) fn hold(&self, id: HoldId, session: Arc<Session>) {
        let entry = Entry {
            session: Some(session),
            waiting: None,
            id,
        };
        let mut state = locked(&self.0);
        let before = state.claims.insert(entry.id.attempt(), entry);
        state.waiting -= usize::from(before.is_some_and(|before| before.waiting.is_some()));
    }

    /// Forgets a claim; returns whether it was known.
    pub(super) fn forget(&self, attempt: AttemptId) -> bool {
        let mut state = locked(&self.0);
        let before = state.claims.remove(&attempt);
        state.waiting -= usize::from(
            before
                .as_ref()
                .is_some_and(|before| before.waiting.is_some()),
        );
        before.is_some()
    }

    /// Whether this process holds by this claim.
    pub(super) fn holds(&self, attempt: AttemptId) -> bool {
        locked(&self.0)
            .claims
            .get(&attempt)
            .is_some_and(|entry| entry.waiting.is_none())
    }

    pub(super) fn clear(&self) {
        *locked(&self.0) = State::default();
    }

    /// The session that carries a claim.
    pub(super) fn session_of(&self, attempt: AttemptId) -> Option<Arc<Session>> {
        locked(&self.0).claims.get(&attempt)?.session.clone()
    }

    /// The ticket of a claim that waits.
    pub(super) fn ticket_of(&self, attempt: AttemptId) -> Option<i64> {
        let place = locked(&self.0)
            .claims
            .get(&attempt)?
            .waiting
            .as_ref()?
            .place()?;
        Some(place.ticket)
    }

    /// Wakes a claim of this process that waits; returns whether the claim is known.
    pub(super) fn wake(&self, attempt: AttemptId) -> bool {
        match locked(&self.0).claims.get(&attempt) {
            Some(entry) => {
                if let Some(waiting) = &entry.waiting {
                    waiting.changed.notify_one();
                }
                true
            }
            None => false,
        }
    }

    pub(super) fn counts(&self) -> Counts {
        let state = locked(&self.0);
        Counts {
            waiting: state.waiting,
            holding: state.claims.len() - state.waiting,
        }
    }

    /// Every claim that waits.
    pub(super) fn waiting(&self) -> Vec<(HoldId, Arc<Waiting>)> {
        let state = locked(&self.0);
        let waiting = state
            .claims
            .values()
            .filter_map(|entry| Some((entry.id.clone(), Arc::clone(entry.waiting.as_ref()?))));
        waiting.collect()
    }
}

/// How many claims there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counts {
    pub(super) waiting: usize,
    pub(super) holding: usize,
}
