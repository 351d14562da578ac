//! The count of a latch.

use std::collections::HashSet;

use super::entry::{Entry, Step};
use crate::{CountDown, LatchState, LockName};

/// A latch that was set.
#[derive(Debug)]
pub(super) struct Latch {
    of: u32,
    /// Who has taken part since it was set.
    arrived: HashSet<LockName>,
}

impl Latch {
    pub(super) fn state(&self) -> LatchState {
        let arrived = u32::try_from(self.arrived.len()).unwrap_or(u32::MAX);
        LatchState {
            left: self.of.saturating_sub(arrived),
            of: self.of,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.state().is_open()
    }
}

impl Entry {
    /// See [`Backend::set_latch`](crate::Backend::set_latch).
    pub(super) fn set_latch(&mut self, count: u32) -> bool {
        if self.latch.as_ref().is_some_and(|latch| !latch.is_open()) {
            return false;
        }
        let set = || Latch {
            of: count,
            arrived: HashSet::new(),
        };
        self.latch = (count > 0).then(|| Box::new(set()));
        true
    }

    /// See [`Backend::count_down`](crate::Backend::count_down).
    pub(super) fn count_down(&mut self, participant: &LockName, step: &mut Step<'_>) -> CountDown {
        let Some(latch) = &mut self.latch else {
            return CountDown::NotSet;
        };
        if !latch.is_open() {
            latch.arrived.insert(participant.clone());
            if latch.is_open() {
                self.pass_all(step);
            }
        }
        CountDown::Left(self.latch.as_ref().map_or(0, |latch| latch.state().left))
    }
}
