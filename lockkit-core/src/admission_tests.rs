use super::*;
use proptest::prelude::*;

const SEGMENTS: u32 = 3;
const PERMITS: u32 = 4;

fn only(segment: u32) -> Mode {
    super::only(segment, SEGMENTS)
}

const ANY: Mode = Mode::Segment {
    pick: Pick::Any { prefer: 0 },
    of: SEGMENTS,
};

const fn permits(count: u32) -> Mode {
    Mode::Permits {
        count,
        limit: PERMITS,
    }
}

fn fair(mode: Mode) -> Standing {
    Standing {
        mode,
        order: Order::Fair,
        passed_over: false,
    }
}

fn let_in(holds: &[Mode], queue: &[Mode]) -> Vec<usize> {
    let turns = turn(holds, queue.iter().copied().map(fair));
    turns.into_iter().map(|(place, _)| place).collect()
}

/// The claims that one kind of resource may get.
fn claims() -> impl Strategy<Value = Vec<Mode>> {
    let readers_and_writers = prop_oneof![Just(Mode::Exclusive), Just(Mode::Shared)];
    let weights = (1..=PERMITS).prop_map(permits);
    let segments = prop_oneof![
        Just(ANY),
        (0..SEGMENTS).prop_map(only),
        (0..SEGMENTS).prop_map(|prefer| Mode::Segment {
            pick: Pick::Any { prefer },
            of: SEGMENTS
        }),
    ];
    prop_oneof![
        prop::collection::vec(readers_and_writers, 1..40),
        prop::collection::vec(weights, 1..40),
        prop::collection::vec(segments, 1..40),
    ]
}

fn check(holds: &[Mode]) {
    let writers = holds
        .iter()
        .filter(|mode| **mode == Mode::Exclusive)
        .count();
    assert!(
        writers == 0 || holds.len() == 1,
        "a writer is alone: {holds:?}"
    );
    let taken: u32 = holds
        .iter()
        .map(|mode| match mode {
            Mode::Permits { count, .. } => *count,
            _ => 0,
        })
        .sum();
    assert!(taken <= PERMITS, "permits stay within the limit: {holds:?}");
    let mut segments: Vec<u32> = holds.iter().filter_map(|mode| mode.segment()).collect();
    segments.sort_unstable();
    segments.dedup();
    let held = holds.iter().filter(|m| matches!(m, Mode::Segment { .. }));
    assert_eq!(segments.len(), held.count(), "a segment has one holder");
}

/// A service in miniature: claims come, holders go, and every change is decided by the rule.
#[derive(Default)]
struct Line {
    next: usize,
    holds: Vec<(usize, Mode)>,
    queue: Vec<(usize, Standing)>,
}

impl Line {
    fn modes(&self) -> Vec<Mode> {
        self.holds.iter().map(|(_, mode)| *mode).collect()
    }

    fn come(&mut self, mode: Mode, order: Order) {
        let claim = self.next;
        self.next += 1;
        let before = self.queue.iter().map(|(_, standing)| standing.mode);
        match enters(mode, order, &self.modes(), before) {
            Some(mode) => self.holds.push((claim, mode)),
            None => self.queue.push((
                claim,
                Standing {
                    mode,
                    order,
                    passed_over: false,
                },
            )),
        }
        check(&self.modes());
    }

    fn leave(&mut self, holder: usize) {
        self.holds.remove(holder % self.holds.len());
        self.let_in();
    }

    fn let_in(&mut self) {
        let turns = turn(&self.modes(), self.queue.iter().map(|(_, s)| *s));
        for (place, turn) in turns.into_iter().rev() {
            match turn {
                Turn::Wake => self.queue[place].1.passed_over = true,
                Turn::HandOver(mode) => {
                    let (claim, _) = self.queue.remove(place);
                    self.holds.push((claim, mode));
                }
            }
        }
        check(&self.modes());
    }
}

proptest! {
    #[test]
    fn the_rule_is_kept_and_everybody_gets_in(
        claims in claims(),
        steps in prop::collection::vec((any::<bool>(), any::<bool>(), 0usize..40), 0..120),
    ) {
        let mut line = Line::default();
        let mut claims = claims.into_iter();
        for (comes, barges, holder) in steps {
            match claims.next().filter(|_| comes) {
                Some(mode) => line.come(mode, if barges { Order::Barging } else { Order::Fair }),
                None if line.holds.is_empty() => {}
                None => line.leave(holder),
            }
        }
        // Nobody comes any more, and everybody is done some time.
        let mut rounds = 0;
        while !line.queue.is_empty() {
            if line.holds.is_empty() {
                line.let_in();
            } else {
                line.leave(0);
            }
            rounds += 1;
            prop_assert!(rounds < 200, "somebody starves: {:?}", line.queue);
        }
    }

    #[test]
    fn in_fair_order_nobody_who_wants_the_same_is_overtaken(
        claims in claims(),
        leaving in prop::collection::vec(0usize..40, 0..200),
    ) {
        let mut line = Line::default();
        for mode in claims {
            line.come(mode, Order::Fair);
        }
        let mut waited = Vec::new();
        for holder in leaving {
            if line.holds.is_empty() {
                break;
            }
            let before: Vec<(usize, Standing)> = line.queue.clone();
            line.leave(holder);
            let left: Vec<usize> = line.queue.iter().map(|(claim, _)| *claim).collect();
            for (place, (claim, entered)) in before.iter().enumerate() {
                if left.contains(claim) {
                    continue;
                }
                waited.push(*claim);
                for (passed, other) in before[..place].iter().filter(|(c, _)| left.contains(c)) {
                    let segment = line.holds.iter().find(|(c, _)| c == claim);
                    let took = segment.and_then(|(_, mode)| mode.segment());
                    prop_assert!(
                        took.is_some_and(|took| !wants(other.mode, took)),
                        "{claim} ({:?}) passed {passed} ({:?})", entered.mode, other.mode
                    );
                }
            }
        }
        prop_assert!(
            waited.is_sorted() || line.modes().iter().all(|m| matches!(m, Mode::Segment { .. })),
            "first come, first served: {waited:?}"
        );
    }

    #[test]
    fn whoever_could_enter_is_not_left_standing(claims in claims(), holder in 0usize..40) {
        let mut line = Line::default();
        for mode in claims {
            line.come(mode, Order::Fair);
        }
        line.leave(holder);
        let modes = line.modes();
        for (place, (_, standing)) in line.queue.iter().enumerate() {
            let before = line.queue[..place].iter().map(|(_, s)| s.mode);
            prop_assert_eq!(enters(standing.mode, Order::Fair, &modes, before), None);
        }
    }

    #[test]
    fn a_fair_newcomer_never_passes_a_writer_or_a_bigger_claim(count in 1..=PERMITS) {
        prop_assert_eq!(enters(permits(count), Order::Fair, &[], [permits(PERMITS)]), None);
        prop_assert_eq!(enters(Mode::Shared, Order::Fair, &[Mode::Shared], [Mode::Exclusive]), None);
    }
}

#[test]
fn a_writer_in_line_stops_the_readers_behind_it() {
    use Mode::{Exclusive, Shared};
    assert_eq!(let_in(&[Shared], &[Exclusive, Shared]), []);
    assert_eq!(let_in(&[], &[Exclusive, Shared]), [0]);
    assert_eq!(let_in(&[Shared], &[Shared, Exclusive, Shared]), [0]);
}

#[test]
fn after_a_writer_the_readers_go_in_together() {
    use Mode::{Exclusive, Shared};
    assert_eq!(let_in(&[], &[Shared; 5]), [0, 1, 2, 3, 4]);
    assert_eq!(let_in(&[], &[Shared, Shared, Exclusive, Shared]), [0, 1]);
}

#[test]
fn many_permits_are_not_overtaken_by_few() {
    assert_eq!(let_in(&[permits(2)], &[permits(3), permits(1)]), []);
    assert_eq!(let_in(&[permits(1)], &[permits(3), permits(1)]), [0]);
    assert_eq!(let_in(&[], &[permits(3), permits(1), permits(1)]), [0, 1]);
}

#[test]
fn a_segment_goes_to_the_first_who_wants_it() {
    let held = [only(0), only(1), only(2)];
    assert_eq!(let_in(&held, &[only(1), ANY]), []);
    assert_eq!(let_in(&held[1..], &[only(1), ANY, only(0)]), [1]);
    assert_eq!(let_in(&held[..2], &[only(1), ANY, ANY]), [1]);
    assert_eq!(let_in(&[held[0], held[2]], &[only(1), ANY, ANY]), [0]);
    // A newcomer does not take what somebody in line wants, and may take anything else.
    assert_eq!(
        enters(ANY, Order::Fair, &[only(0)], [only(1)]),
        Some(only(2))
    );
    assert_eq!(enters(only(1), Order::Fair, &[only(0)], [only(1)]), None);
    assert_eq!(
        enters(only(2), Order::Fair, &[only(1)], [only(1)]),
        Some(only(2))
    );
}

#[test]
fn the_preferred_segment_is_taken_if_it_is_free() {
    let prefer = |prefer| Mode::Segment {
        pick: Pick::Any { prefer },
        of: SEGMENTS,
    };
    assert_eq!(fits(prefer(2), &[only(0)]), Some(only(2)));
    assert_eq!(fits(prefer(2), &[only(2)]), Some(only(0)));
    assert_eq!(fits(prefer(7), &[]), Some(only(1)), "wraps around");
    assert_eq!(fits(only(3), &[]), None, "there is no such segment");
}

#[test]
fn a_barger_is_passed_over_once_at_most() {
    let barging = |passed_over| Standing {
        mode: Mode::Exclusive,
        order: Order::Barging,
        passed_over,
    };
    assert_eq!(turn(&[], [barging(false)]), [(0, Turn::Wake)]);
    assert_eq!(
        turn(&[], [barging(true), barging(false)]),
        [(0, Turn::HandOver(Mode::Exclusive))]
    );
    assert_eq!(turn(&[Mode::Shared], [barging(true)]), []);
    assert_eq!(
        enters(Mode::Exclusive, Order::Barging, &[], [Mode::Exclusive]),
        Some(Mode::Exclusive),
        "this once"
    );
}

#[test]
fn permit_counts_do_not_wrap() {
    let all = Mode::Permits {
        count: u32::MAX,
        limit: u32::MAX,
    };
    assert!(fits(all, &[]).is_some());
    assert!(fits(all, &[all]).is_none());
}

#[test]
fn more_holders_than_a_lowered_limit_keep_others_out() {
    let lowered = Mode::Permits { count: 1, limit: 2 };
    assert!(fits(lowered, &[permits(2), permits(1)]).is_none());
    assert!(fits(lowered, &[permits(1)]).is_some());
}
