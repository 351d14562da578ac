//! Settings of latches that nobody answered.
//!
//! A request whose answer is lost may have taken effect. Who then asks for the same again must not be
//! told that somebody else was first, nor undo what was counted meanwhile. So a try that repeats an
//! unanswered one goes out under the same id, which the server keeps with the latch.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lockkit_core::{AttemptId, Resource};

/// How many are remembered.
const MOST: usize = 1024;

/// The tries that nobody answered, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Unanswered(Mutex<VecDeque<Asked>>);

/// What was asked for, and under which id.
#[derive(Debug)]
struct Asked {
    resource: Resource,
    count: u32,
    id: AttemptId,
}

impl Unanswered {
    /// Begins a try. Two at a time never share an id: each is answered for itself.
    pub(crate) fn begin(&self, resource: &Resource, count: u32) -> Try<'_> {
        let mut all = self.locked();
        let is_same = |asked: &Asked| asked.count == count && asked.resource == *resource;
        let earlier = all.iter().position(is_same).and_then(|at| all.remove(at));
        let new = || Asked {
            resource: resource.clone(),
            count,
            id: AttemptId::random(),
        };
        let asked = earlier.unwrap_or_else(new);
        Try {
            all: self,
            id: asked.id,
            asked: Some(asked),
        }
    }

    fn locked(&self) -> MutexGuard<'_, VecDeque<Asked>> {
        // Nothing in here panics half-way through a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A try that is under way; remembered if it is dropped without an answer.
#[derive(Debug)]
pub(crate) struct Try<'a> {
    all: &'a Unanswered,
    /// To be sent along.
    pub(crate) id: AttemptId,
    asked: Option<Asked>,
}

impl Try<'_> {
    /// It was answered: whoever asks for the same next means another setting.
    pub(crate) fn answered(mut self) {
        self.asked = None;
    }
}

impl Drop for Try<'_> {
    fn drop(&mut self) {
        if let Some(asked) = self.asked.take() {
            let mut all = self.all.locked();
            if all.len() == MOST {
                all.pop_front();
            }
            all.push_back(asked);
        }
    }
}

#[cfg(test)]
mod tests {
    use lockkit_core::Primitive;

    use super::*;

    #[test]
    fn only_the_same_asked_again_without_an_answer_has_the_same_id() {
        let latch = |name: &str| Resource::new(Primitive::Latch, name.parse().unwrap());
        let all = Unanswered::default();
        let first = all.begin(&latch("a"), 3).id;
        let others = [all.begin(&latch("a"), 4).id, all.begin(&latch("b"), 3).id];
        assert!(!others.contains(&first));
        let again = all.begin(&latch("a"), 3);
        assert_eq!(again.id, first);
        let beside = all.begin(&latch("a"), 3);
        assert_ne!(beside.id, first, "two at a time");
        beside.answered();
        again.answered();
        assert_ne!(all.begin(&latch("a"), 3).id, first, "it was answered");
        for number in 0..2 * MOST {
            drop(all.begin(&latch(&format!("n{number}")), 1));
        }
        assert_eq!(all.locked().len(), MOST);
    }
}
