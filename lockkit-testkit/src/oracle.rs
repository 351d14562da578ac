//! Whether a history can be the history of a fenced mutex.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use lockkit_core::{Fence, Instant};

use crate::Span;

/// What is wrong with a history, with the two spans that show it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// Two holders believed in the lock at the same time.
    Overlap(Span, Span),
    /// Two grants carry one fence.
    SameFence(Span, Span),
    /// A grant after another carries a lower fence.
    FallingFence(Span, Span),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, earlier, later) = match self {
            Self::Overlap(a, b) => ("two believed in it at once", a, b),
            Self::SameFence(a, b) => ("one fence was given twice", a, b),
            Self::FallingFence(a, b) => ("a later grant has a lower fence", a, b),
        };
        // Nanoseconds since the first of the two, because the clock's zero tells nothing.
        let zero = earlier.returned.min(later.returned);
        let span = |s: &Span| {
            let since = |t: Instant| t.saturating_duration_since(zero);
            format!(
                "fence {} held {:?} to {:?}",
                s.fence,
                since(s.returned),
                since(s.end)
            )
        };
        write!(
            f,
            "{:?}: {what}: {}; {}",
            earlier.name,
            span(earlier),
            span(later)
        )
    }
}

/// Everything that is wrong with a history of exclusive holds, nothing if it is sound.
///
/// For each name: no two believed intervals overlap, no fence was given twice, and whoever got the
/// lock after another was done with it has a greater fence. Intervals that only touch are sound.
#[must_use]
pub fn violations(history: &[Span]) -> Vec<Violation> {
    let mut by_name: BTreeMap<&str, Vec<&Span>> = BTreeMap::new();
    for span in history {
        by_name.entry(&span.name).or_default().push(span);
    }
    by_name.into_values().flat_map(of_one_name).collect()
}

fn of_one_name(mut spans: Vec<&Span>) -> Vec<Violation> {
    spans.sort_by_key(|span| (span.returned, span.end));
    let mut found = Vec::new();
    let mut fences: HashMap<Fence, &Span> = HashMap::new();
    // Of those before: the one that ends last, and the one with the highest fence.
    let mut last: Option<&Span> = None;
    let mut highest: Option<&Span> = None;
    for span in spans {
        if let Some(last) = last.filter(|last| span.returned < last.end) {
            found.push(Violation::Overlap(last.clone(), span.clone()));
        }
        if let Some(twin) = fences.insert(span.fence, span) {
            found.push(Violation::SameFence(twin.clone(), span.clone()));
        } else if let Some(highest) = highest.filter(|highest| span.is_after(highest)) {
            found.push(Violation::FallingFence(highest.clone(), span.clone()));
        }
        last = last.into_iter().chain([span]).max_by_key(|span| span.end);
        highest = highest
            .into_iter()
            .chain([span])
            .max_by_key(|span| span.fence);
    }
    found
}

impl Span {
    /// Whether this was granted after `other`, whose fence is higher all the same.
    fn is_after(&self, other: &Self) -> bool {
        other.end <= self.returned && other.returned < self.returned && other.fence > self.fence
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(fence: u64, [returned, end]: [u64; 2]) -> Span {
        let at = Instant::from_nanos;
        Span::new(
            "n",
            at(returned.saturating_sub(1)),
            at(returned),
            Fence::new(fence),
            at(end),
        )
    }

    /// Holds one after the other, with gaps.
    fn sound(n: u64) -> Vec<Span> {
        (0..n)
            .map(|i| span(10 + 2 * i, [100 * i, 100 * i + 90]))
            .collect()
    }

    #[test]
    fn a_sound_history_has_no_violation() {
        let mut history = sound(50);
        history.reverse();
        history.push(span(1000, [90, 100]));
        history[0].name = "m".into();
        assert_eq!(violations(&sound(50)), []);
        assert_eq!(violations(&[]), []);
    }

    #[test]
    fn touching_intervals_are_sound_and_instants_have_no_order() {
        assert_eq!(violations(&[span(1, [10, 20]), span(2, [20, 30])]), []);
        assert_eq!(violations(&[span(2, [20, 20]), span(1, [20, 20])]), []);
    }

    #[test]
    fn other_names_are_other_histories() {
        let mut other = span(10, [0, 90]);
        other.name = "m".into();
        assert_eq!(violations(&[span(10, [0, 90]), other]), []);
    }

    #[test]
    fn every_seeded_double_hold_is_caught() {
        for i in 0..49 {
            let mut history = sound(50);
            history[i].end = history[i + 1].returned + std::time::Duration::from_nanos(1);
            let found = violations(&history);
            assert!(
                matches!(found[..], [Violation::Overlap(..)]),
                "{i}: {found:?}"
            );
        }
    }

    #[test]
    fn a_long_hold_that_covers_many_overlaps_with_each() {
        let mut history = sound(10);
        history.push(span(9, [0, 900]));
        let overlaps = violations(&history);
        assert!(
            overlaps
                .iter()
                .filter(|v| matches!(v, Violation::Overlap(..)))
                .count()
                >= 9
        );
    }

    #[test]
    fn every_seeded_duplicate_fence_is_caught() {
        for (i, j) in (0..20).flat_map(|i| (i + 1..20).map(move |j| (i, j))) {
            let mut history = sound(20);
            history[j].fence = history[i].fence;
            let found = violations(&history);
            assert!(
                found.iter().any(|v| matches!(v, Violation::SameFence(..))),
                "{i} {j}"
            );
        }
    }

    #[test]
    fn every_seeded_inversion_is_caught() {
        for i in 0..49 {
            let mut history = sound(50);
            let (a, b) = (history[i].fence, history[i + 1].fence);
            (history[i].fence, history[i + 1].fence) = (b, a);
            let found = violations(&history);
            assert!(
                matches!(found[..], [Violation::FallingFence(..)]),
                "{i}: {found:?}"
            );
        }
    }

    #[test]
    fn a_violation_reads_as_a_sentence() {
        let found = violations(&[span(1, [1_000, 5_000]), span(2, [3_000, 6_000])]);
        let text = "\"n\": two believed in it at once: fence 1 held 0ns to 4µs; \
                    fence 2 held 2µs to 5µs";
        assert_eq!(found[0].to_string(), text);
    }
}
