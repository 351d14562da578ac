//! The admission rule: who may enter now.
//!
//! Two pure functions of the holds, the queue in order and the claim, shared by every backend
//! that decides on the client, so that they can be tested without a server and cannot differ
//! between backends.
//!
//! * [`enters`] answers for one claim: a newcomer, or one that stands in line.
//! * [`turn`] answers for a queue after something was let go: whom to let in.
//!
//! # What they keep
//!
//! A writer is alone; permits never exceed their limit; a segment has one holder. In fair order
//! nobody passes anybody: a writer in line stops the readers behind it, and a claim for many
//! permits the smaller ones behind it, so nobody starves. When a writer is done, all readers up
//! to the next writer in line enter together. Only in a segmented lock may somebody enter past a
//! waiter, and only with a segment that this waiter does not want.
//!
//! The order is that of the fair reader-writer lock of Krieger, Stumm, Unrau and Hanna (*A Fair
//! Fast Scalable Reader-Writer Lock*, ICPP 1993): one queue, maximal runs of readers.

use crate::{Mode, Order, Pick};

/// A claim in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// How it wants to hold.
    pub mode: Mode,
    /// Whether it lets newcomers pass.
    pub order: Order,
    /// Whether it was passed over once, by [`Turn::Wake`].
    pub passed_over: bool,
}

/// What to do with a claim in line whose turn has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Give it the hold right away, in this mode.
    HandOver(Mode),
    /// Wake it and leave the resource free until it comes: a newcomer may be faster, this once.
    Wake,
}

/// How a claim would be held beside `holds`; `None` if it cannot.
///
/// # Examples
///
/// ```
/// use lockkit_core::{Mode, Pick, admission};
///
/// assert!(admission::fits(Mode::Shared, &[Mode::Shared, Mode::Shared]).is_some());
/// assert!(admission::fits(Mode::Exclusive, &[Mode::Shared]).is_none());
/// let permits = |count| Mode::Permits { count, limit: 3 };
/// assert!(admission::fits(permits(1), &[permits(2)]).is_some());
/// assert!(admission::fits(permits(2), &[permits(2)]).is_none());
/// let segment = |pick| Mode::Segment { pick, of: 2 };
/// let first = segment(Pick::Only(0));
/// assert_eq!(
///     admission::fits(segment(Pick::Any { prefer: 0 }), &[first]),
///     Some(segment(Pick::Only(1))),
/// );
/// ```
#[must_use]
pub fn fits(mode: Mode, holds: &[Mode]) -> Option<Mode> {
    match mode {
        Mode::Exclusive => holds.is_empty().then_some(mode),
        Mode::Shared => holds
            .iter()
            .all(|held| *held == Mode::Shared)
            .then_some(mode),
        Mode::Permits { count, limit } => {
            let taken = holds.iter().try_fold(count, |taken, held| match held {
                Mode::Permits { count, .. } => taken.checked_add(*count),
                _ => None,
            })?;
            (taken <= limit).then_some(mode)
        }
        Mode::Segment { pick, of } => {
            let is_free = |segment: &u32| holds.iter().all(|held| !wants(*held, *segment));
            let segment = candidates(pick, of).find(is_free)?;
            Some(only(segment, of))
        }
    }
}

/// How a claim enters now, with `before` in line before it; `None` if it has to wait.
///
/// For a newcomer, `before` is the whole queue. A fair newcomer goes to the end of it; a barging
/// one may take what is free at this moment, and cannot starve those who wait, because [`turn`]
/// passes nobody over twice. Who stands in line keeps to it: that is a fair claim with those
/// before it.
#[must_use]
pub fn enters(
    mode: Mode,
    order: Order,
    holds: &[Mode],
    before: impl IntoIterator<Item = Mode>,
) -> Option<Mode> {
    let mut before = before.into_iter();
    if let Mode::Segment { pick, of } = mode {
        let mut taken = holds.to_vec();
        if order == Order::Fair {
            taken.extend(before);
        }
        let is_free = |segment: &u32| taken.iter().all(|other| !wants(*other, *segment));
        return candidates(pick, of)
            .find(is_free)
            .map(|segment| only(segment, of));
    }
    if order == Order::Fair && before.next().is_some() {
        return None;
    }
    fits(mode, holds)
}

/// Whom of a queue to let in beside `holds`: places in it, counted from 0, in order.
///
/// Everybody who is handed the hold counts as a holder for those behind.
#[must_use]
pub fn turn(holds: &[Mode], queue: impl IntoIterator<Item = Standing>) -> Vec<(usize, Turn)> {
    let mut holds = holds.to_vec();
    let mut passed = Vec::new();
    let mut turns = Vec::new();
    for (place, standing) in queue.into_iter().enumerate() {
        let enters = enters(standing.mode, Order::Fair, &holds, passed.iter().copied());
        match enters {
            Some(_) if standing.order == Order::Barging && !standing.passed_over => {
                turns.push((place, Turn::Wake));
                break;
            }
            Some(mode) => {
                holds.push(mode);
                turns.push((place, Turn::HandOver(mode)));
            }
            // Only a segment may be free for somebody behind.
            None => match standing.mode {
                Mode::Segment { of, .. } if has_free_segment(&holds, of) => {
                    passed.push(standing.mode);
                }
                _ => break,
            },
        }
    }
    turns
}

fn has_free_segment(holds: &[Mode], of: u32) -> bool {
    u32::try_from(holds.len()).is_ok_and(|taken| taken < of)
}

/// Whether a claim or a hold stands in the way of whoever would take this segment.
const fn wants(other: Mode, segment: u32) -> bool {
    match other {
        Mode::Segment {
            pick: Pick::Only(only),
            ..
        } => only == segment,
        _ => true,
    }
}

const fn only(segment: u32, of: u32) -> Mode {
    Mode::Segment {
        pick: Pick::Only(segment),
        of,
    }
}

fn candidates(pick: Pick, of: u32) -> impl Iterator<Item = u32> {
    let (first, count) = match pick {
        Pick::Only(segment) => (segment, u32::from(segment < of)),
        Pick::Any { prefer } => (prefer, of),
    };
    let of = u64::from(of.max(1));
    (0..u64::from(count)).map(move |step| {
        let segment = (u64::from(first) + step) % of;
        u32::try_from(segment).unwrap_or(u32::MAX) // Below `of`, which is a `u32`.
    })
}

#[cfg(test)]
#[path = "admission_tests.rs"]
mod tests;
