//! The admission rule: who may enter now.
//!
//! One pure function of the holds, the queue and the newcomer, shared by every backend that
//! decides on the client, so that it can be tested without a server and cannot differ between
//! backends.

use crate::{Mode, Order};

/// What to do with whoever is first in line when something was let go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It cannot enter beside those who hold.
    Wait,
    /// Give it the hold right away: it is fair, or it was passed over once before.
    HandOver,
    /// Wake it and leave the resource free until it comes: a newcomer may be faster, this once.
    Wake,
}

/// Whether a claim of this mode may hold beside `holds`.
///
/// # Examples
///
/// ```
/// use lockkit_core::{Mode, admission};
///
/// assert!(admission::compatible(Mode::Shared, &[Mode::Shared, Mode::Shared]));
/// assert!(!admission::compatible(Mode::Exclusive, &[Mode::Shared]));
/// let permits = |count| Mode::Permits { count, limit: 3 };
/// assert!(admission::compatible(permits(1), &[permits(2)]));
/// assert!(!admission::compatible(permits(2), &[permits(2)]));
/// ```
#[must_use]
pub fn compatible(mode: Mode, holds: &[Mode]) -> bool {
    match mode {
        Mode::Exclusive => holds.is_empty(),
        Mode::Shared => holds.iter().all(|held| *held == Mode::Shared),
        Mode::Permits { count, limit } => {
            let taken = holds.iter().try_fold(count, |taken, held| match held {
                Mode::Permits { count, limit: same } if *same == limit => taken.checked_add(*count),
                _ => None,
            });
            taken.is_some_and(|taken| taken <= limit)
        }
    }
}

/// Whether a newcomer may enter now, with so many claims waiting before it.
///
/// A fair newcomer goes to the end of the line. A barging one may take what is free at this
/// moment; it cannot starve those who wait, because [`next`] passes nobody over twice.
#[must_use]
pub fn newcomer_enters(mode: Mode, order: Order, holds: &[Mode], waiting: usize) -> bool {
    (order == Order::Barging || waiting == 0) && compatible(mode, holds)
}

/// What to do with whoever is first in line.
#[must_use]
pub fn next(mode: Mode, order: Order, passed_over: bool, holds: &[Mode]) -> Next {
    if !compatible(mode, holds) {
        Next::Wait
    } else if order == Order::Fair || passed_over {
        Next::HandOver
    } else {
        Next::Wake
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mode() -> impl Strategy<Value = Mode> {
        prop_oneof![
            Just(Mode::Exclusive),
            Just(Mode::Shared),
            (1u32..5).prop_map(|count| Mode::Permits { count, limit: 4 }),
        ]
    }

    proptest! {
        #[test]
        fn whoever_enters_never_breaks_the_rule(claims in prop::collection::vec(mode(), 0..20)) {
            let mut holds = Vec::new();
            for claim in claims {
                if compatible(claim, &holds) {
                    holds.push(claim);
                }
            }
            let writers = holds.iter().filter(|mode| **mode == Mode::Exclusive).count();
            prop_assert!(writers == 0 || holds.len() == 1, "a writer is alone");
            let permits: u32 = holds
                .iter()
                .map(|mode| if let Mode::Permits { count, .. } = mode { *count } else { 0 })
                .sum();
            prop_assert!(permits <= 4, "permits stay within the limit");
        }

        #[test]
        fn a_fair_newcomer_never_passes_anyone(mode in mode(), waiting in 1usize..9) {
            prop_assert!(!newcomer_enters(mode, Order::Fair, &[], waiting));
        }
    }

    #[test]
    fn a_barger_is_passed_over_once_at_most() {
        assert_eq!(
            next(Mode::Exclusive, Order::Barging, false, &[]),
            Next::Wake
        );
        assert_eq!(
            next(Mode::Exclusive, Order::Barging, true, &[]),
            Next::HandOver
        );
        assert_eq!(
            next(Mode::Exclusive, Order::Fair, false, &[]),
            Next::HandOver
        );
        assert_eq!(
            next(Mode::Exclusive, Order::Fair, true, &[Mode::Shared]),
            Next::Wait
        );
    }

    #[test]
    fn permit_counts_do_not_wrap() {
        let all = Mode::Permits {
            count: u32::MAX,
            limit: u32::MAX,
        };
        assert!(compatible(all, &[]));
        assert!(!compatible(all, &[all]));
    }

    #[test]
    fn another_limit_is_never_compatible() {
        let of = |limit| Mode::Permits { count: 1, limit };
        assert!(!compatible(of(5), &[of(4)]));
    }
}
