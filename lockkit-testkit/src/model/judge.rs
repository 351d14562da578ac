//! Whether a record of holds can be the record of what was promised.

use std::collections::{BTreeMap, HashMap};

use lockkit_core::{Instant, Mode};

use super::record::{Grant, Record};

/// A hold, and how long it was believed in.
#[derive(Clone, Copy, Debug)]
struct Span {
    grant: Grant,
    until: Instant,
}

/// Everything that is wrong with a record, in words; nothing if it is sound.
///
/// For each name: at no instant do more believe in it than may hold beside each other, as
/// the primitive means it; grants that raise a fence have different ones, in the order of time; and
/// a shared grant has the fence of the last one that raised it. Nothing is said of fences where
/// there are none.
pub(super) fn judge(records: &[Record], fenced: bool) -> Vec<String> {
    let mut wrong: Vec<String> = records
        .iter()
        .filter_map(|record| match record {
            Record::Wrong(what) => Some(what.clone()),
            _ => None,
        })
        .collect();
    for spans in spans(records).into_values() {
        beside(&spans, &mut wrong);
        if fenced {
            fences(&spans, &mut wrong);
        }
    }
    wrong.extend(super::latches::judge(records));
    wrong
}

fn spans(records: &[Record]) -> BTreeMap<u32, Vec<Span>> {
    let mut until: HashMap<u64, Instant> = HashMap::new();
    for record in records {
        if let Record::Held { hold, at } = record {
            let last = until.entry(*hold).or_insert(*at);
            *last = (*last).max(*at);
        }
    }
    let mut spans: BTreeMap<u32, Vec<Span>> = BTreeMap::new();
    for record in records {
        if let Record::Grant(grant) = record {
            let last = until.get(&grant.hold).copied().unwrap_or(grant.from);
            spans.entry(grant.name).or_default().push(Span {
                grant: *grant,
                until: last.max(grant.from),
            });
        }
    }
    for spans in spans.values_mut() {
        spans.sort_by_key(|span| span.grant.from);
    }
    spans
}

/// Nobody believes beside whom he may not hold beside.
fn beside(spans: &[Span], wrong: &mut Vec<String>) {
    let mut believed: Vec<Span> = Vec::new();
    for span in spans {
        // Intervals that only touch are sound.
        believed.retain(|other| other.until > span.grant.from);
        if !may_hold_beside(span.grant.mode, &believed) && span.until > span.grant.from {
            let others: Vec<String> = believed.iter().map(describe).collect();
            wrong.push(format!(
                "{} beside {}",
                describe(span),
                others.join(" and ")
            ));
        }
        believed.push(*span);
    }
}

/// What the primitives mean, said apart from the rule that is under test.
fn may_hold_beside(mode: Mode, others: &[Span]) -> bool {
    let mut others = others.iter().map(|other| other.grant.mode);
    match mode {
        Mode::Shared => others.all(|other| other == Mode::Shared),
        Mode::Permits { count, limit } => {
            let taken: u32 = others
                .map(|other| match other {
                    Mode::Permits { count, .. } => count,
                    _ => limit,
                })
                .sum();
            count + taken <= limit
        }
        Mode::Segment { .. } => others.all(|other| other.segment() != mode.segment()),
        _ => others.next().is_none(),
    }
}

/// Fences rise with time.
fn fences(spans: &[Span], wrong: &mut Vec<String>) {
    let raises = |span: &&Span| span.grant.mode != Mode::Shared;
    let mut by_fence: HashMap<u64, &Span> = HashMap::new();
    for span in spans.iter().filter(raises) {
        if let Some(twin) = by_fence.insert(span.grant.fence, span) {
            wrong.push(format!(
                "one fence twice: {}; {}",
                describe(twin),
                describe(span)
            ));
        }
    }
    // In the order of asking, with the highest fence that had been given by then.
    let mut asked: Vec<&Span> = spans.iter().collect();
    asked.sort_by_key(|span| span.grant.asked);
    let mut given = spans.iter().filter(raises).peekable();
    let mut highest: Option<&Span> = None;
    for span in asked {
        while let Some(before) = given.next_if(|other| other.grant.from <= span.grant.asked) {
            if highest.is_none_or(|highest| highest.grant.fence < before.grant.fence) {
                highest = Some(before);
            }
        }
        let Some(highest) = highest else { continue };
        let too_low = match span.grant.mode {
            Mode::Shared => span.grant.fence < highest.grant.fence,
            _ => span.grant.fence <= highest.grant.fence && highest.grant.hold != span.grant.hold,
        };
        if too_low {
            wrong.push(format!(
                "a fence that fell: {} after {}",
                describe(span),
                describe(highest)
            ));
        }
    }
    // A reader has not seen a write that nobody had asked for yet.
    for reader in spans.iter().filter(|span| span.grant.mode == Mode::Shared) {
        let early = spans.iter().filter(raises).find(|writer| {
            writer.grant.asked >= reader.grant.from && writer.grant.fence <= reader.grant.fence
        });
        if let Some(writer) = early {
            wrong.push(format!(
                "a reader with the fence of a later writer: {}; {}",
                describe(reader),
                describe(writer)
            ));
        }
    }
}

fn describe(span: &Span) -> String {
    let Span { grant, until } = span;
    let micros = |instant: Instant| instant.as_nanos() / 1_000;
    format!(
        "[name {} {} fence {} hold {:x}, asked {} us, believed {} to {} us]",
        grant.name,
        grant.mode,
        grant.fence,
        grant.hold,
        micros(grant.asked),
        micros(grant.from),
        micros(*until),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockkit_core::Pick;

    const X: Mode = Mode::Exclusive;
    const S: Mode = Mode::Shared;

    const fn permits(count: u32) -> Mode {
        Mode::Permits { count, limit: 3 }
    }

    const fn segment(segment: u32) -> Mode {
        Mode::Segment {
            pick: Pick::Only(segment),
            of: 3,
        }
    }

    /// Holds of one name: mode, fence, asked, from, until.
    fn record(holds: &[(Mode, u64, u64, u64, u64)]) -> Vec<Record> {
        let at = Instant::from_nanos;
        let mut records = Vec::new();
        for (hold, (mode, fence, asked, from, until)) in (0..).zip(holds) {
            records.push(Record::Grant(Grant {
                hold,
                name: 0,
                mode: *mode,
                fence: *fence,
                asked: at(*asked),
                from: at(*from),
            }));
            records.push(Record::Held {
                hold,
                at: at(*until),
            });
        }
        records
    }

    fn count(holds: &[(Mode, u64, u64, u64, u64)]) -> usize {
        judge(&record(holds), true).len()
    }

    #[test]
    fn sound_records_are_sound() {
        assert_eq!(count(&[(X, 1, 0, 1, 5), (X, 2, 2, 5, 9)]), 0, "they touch");
        assert_eq!(
            count(&[(S, 0, 0, 1, 9), (S, 0, 0, 2, 9), (X, 1, 0, 9, 10)]),
            0
        );
        assert_eq!(
            count(&[(X, 4, 0, 1, 5), (S, 4, 2, 6, 9), (S, 4, 2, 6, 9)]),
            0
        );
        assert_eq!(
            count(&[(permits(2), 1, 0, 1, 9), (permits(1), 2, 0, 2, 9)]),
            0
        );
        assert_eq!(
            count(&[(segment(0), 1, 0, 1, 9), (segment(1), 2, 0, 2, 9)]),
            0
        );
    }

    #[test]
    fn two_writers_are_caught() {
        assert_eq!(count(&[(X, 1, 0, 1, 5), (X, 2, 2, 4, 9)]), 1);
    }

    #[test]
    fn a_reader_beside_a_writer_is_caught() {
        assert_eq!(count(&[(X, 1, 0, 1, 5), (S, 1, 2, 4, 9)]), 1);
        assert_eq!(count(&[(S, 0, 0, 1, 5), (X, 1, 0, 4, 9)]), 1);
    }

    #[test]
    fn too_many_permits_are_caught() {
        assert_eq!(
            count(&[(permits(2), 1, 0, 1, 9), (permits(2), 2, 0, 2, 9)]),
            1
        );
    }

    #[test]
    fn two_holders_of_a_segment_are_caught() {
        assert_eq!(
            count(&[(segment(1), 1, 0, 1, 9), (segment(1), 2, 0, 2, 9)]),
            1
        );
    }

    #[test]
    fn a_fence_given_twice_is_caught() {
        assert_eq!(count(&[(X, 1, 0, 1, 5), (X, 1, 0, 6, 9)]), 1);
    }

    #[test]
    fn a_fence_that_falls_is_caught() {
        assert_eq!(count(&[(X, 2, 0, 1, 5), (X, 1, 6, 7, 9)]), 1);
        assert_eq!(count(&[(X, 2, 0, 1, 5), (S, 1, 6, 7, 9)]), 1, "a reader's");
    }

    #[test]
    fn a_reader_with_the_fence_of_the_future_is_caught() {
        assert_eq!(count(&[(S, 3, 0, 1, 5), (X, 3, 6, 7, 9)]), 1);
    }

    #[test]
    fn what_an_actor_saw_is_told() {
        assert_eq!(
            judge(&[Record::Wrong("a part is missing".into())], true).len(),
            1
        );
    }
}
