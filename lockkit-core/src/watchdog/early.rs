//! News about a hold that came before the grant of it did.

use std::collections::VecDeque;

use crate::AttemptId;

/// How many ids are remembered of each kind.
const MOST: usize = 1024;

/// What a backend told of ids whose hold is not known here yet.
#[derive(Default)]
pub(super) struct Early {
    gone: VecDeque<AttemptId>,
    asked: VecDeque<AttemptId>,
}

impl Early {
    /// The service has taken it away.
    pub(super) fn note_gone(&mut self, attempt: AttemptId) {
        note(&mut self.gone, attempt);
    }

    pub(super) fn is_gone(&self, attempt: AttemptId) -> bool {
        self.gone.contains(&attempt)
    }

    /// Somebody asks for it.
    pub(super) fn note_asked(&mut self, attempt: AttemptId) {
        note(&mut self.asked, attempt);
    }

    pub(super) fn is_asked(&self, attempt: AttemptId) -> bool {
        self.asked.contains(&attempt)
    }
}

fn note(ids: &mut VecDeque<AttemptId>, attempt: AttemptId) {
    if ids.len() == MOST {
        ids.pop_front();
    }
    ids.push_back(attempt);
}
