//! Whether a record of latches can be the record of what was promised.

use std::collections::{BTreeMap, BTreeSet};

use lockkit_core::Instant;

use super::plan::count_of_latch;
use super::record::Record;

/// What happened at one latch.
#[derive(Default)]
struct Latch {
    /// When each participant was first about to count, and when it was first known to have.
    began: BTreeMap<u32, Instant>,
    done: BTreeMap<u32, Instant>,
}

impl Latch {
    /// How many may have counted by then.
    fn at_most(&self, by: Instant) -> BTreeSet<u32> {
        let began = self.began.iter().filter(|(_, at)| **at <= by);
        began.map(|(who, _)| *who).collect()
    }

    /// How many must have counted by then.
    fn at_least(&self, by: Instant) -> BTreeSet<u32> {
        let done = self.done.iter().filter(|(_, at)| **at <= by);
        done.map(|(who, _)| *who).collect()
    }
}

/// Everything that is wrong. Each latch is set once, to [`count_of_latch`].
///
/// Nobody passes before as many participants as that may have counted; nobody who comes after they
/// have waits in vain; and what is told to be left lies between the two.
pub(super) fn judge(records: &[Record]) -> Vec<String> {
    let mut latches: BTreeMap<u32, Latch> = BTreeMap::new();
    let first = |times: &mut BTreeMap<u32, Instant>, who: u32, at: Instant| {
        let first = times.entry(who).or_insert(at);
        *first = (*first).min(at);
    };
    for record in records {
        match record {
            Record::Steps { latch, who, at } => {
                first(&mut latches.entry(*latch).or_default().began, *who, *at);
            }
            Record::Stepped {
                latch,
                who,
                answered,
                ..
            } => first(
                &mut latches.entry(*latch).or_default().done,
                *who,
                *answered,
            ),
            _ => {}
        }
    }
    let none = Latch::default();
    let mut wrong = Vec::new();
    for record in records {
        match *record {
            Record::Waited {
                latch,
                asked,
                answered,
                passed,
            } => {
                let of = count_of_latch(latch) as usize;
                let counted = latches.get(&latch).unwrap_or(&none);
                let (most, least) = (
                    counted.at_most(answered).len(),
                    counted.at_least(asked).len(),
                );
                if passed && most < of {
                    wrong.push(format!(
                        "passed latch {latch} of {of} when {most} had counted"
                    ));
                }
                if !passed && least >= of {
                    wrong.push(format!("waited in vain at latch {latch}, which was open"));
                }
            }
            Record::Stepped {
                latch,
                who,
                asked,
                answered,
                left,
            } => {
                let of = count_of_latch(latch);
                let counted = latches.get(&latch).unwrap_or(&none);
                let mut least = counted.at_least(asked);
                least.insert(who);
                let left_for =
                    |counted: usize| of.saturating_sub(u32::try_from(counted).unwrap_or(u32::MAX));
                let (low, high) = (
                    left_for(counted.at_most(answered).len()),
                    left_for(least.len()),
                );
                if !(low..=high).contains(&left) {
                    wrong.push(format!(
                        "{left} left of {of} at latch {latch}, where it was {low} to {high}"
                    ));
                }
            }
            _ => {}
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATCH: u32 = 0;

    fn steps(who: u32, at: u64) -> Record {
        Record::Steps {
            latch: LATCH,
            who,
            at: Instant::from_nanos(at),
        }
    }

    fn stepped(who: u32, asked: u64, answered: u64, left: u32) -> Record {
        Record::Stepped {
            latch: LATCH,
            who,
            asked: Instant::from_nanos(asked),
            answered: Instant::from_nanos(answered),
            left,
        }
    }

    fn waited(asked: u64, answered: u64, passed: bool) -> Record {
        Record::Waited {
            latch: LATCH,
            asked: Instant::from_nanos(asked),
            answered: Instant::from_nanos(answered),
            passed,
        }
    }

    #[test]
    fn a_sound_record_is_sound() {
        assert_eq!(count_of_latch(LATCH), 2);
        let records = [
            steps(0, 1),
            stepped(0, 1, 2, 1),
            stepped(0, 3, 4, 1),
            waited(3, 5, false),
            steps(1, 5),
            stepped(1, 5, 8, 0),
            waited(1, 6, true),
            waited(9, 10, true),
            waited(7, 9, false),
        ];
        assert_eq!(judge(&records), Vec::<String>::new());
    }

    #[test]
    fn who_passes_too_early_is_caught() {
        assert_eq!(
            judge(&[steps(0, 1), steps(0, 2), waited(1, 6, true)]).len(),
            1
        );
    }

    #[test]
    fn who_is_forgotten_is_caught() {
        let records = [
            steps(0, 1),
            steps(1, 1),
            stepped(0, 1, 2, 1),
            stepped(1, 1, 3, 0),
            waited(4, 9, false),
        ];
        assert_eq!(judge(&records).len(), 1);
    }

    #[test]
    fn a_participant_that_counts_twice_is_caught() {
        let records = [steps(0, 1), stepped(0, 1, 2, 1), stepped(0, 3, 4, 0)];
        assert_eq!(judge(&records).len(), 1);
    }
}
