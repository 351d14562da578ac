//! Modes, as they are stored.

use lockkit_core::{Claim, Error, ErrorKind, Mode, Pick, Primitive, Result};

use super::descriptor::DRIVER;

/// The columns of a mode. The size is stored once, with the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    /// 0 exclusive, 1 shared, 2 permits, 3 a segment.
    pub(super) mode: i64,
    /// How many permits, or which segment; none for any.
    pub(super) amount: Option<i64>,
    /// The segment to look at first.
    pub(super) prefer: Option<i64>,
}

impl Kind {
    pub(super) fn of(mode: Mode) -> Self {
        let (mode, amount, prefer) = match mode {
            Mode::Shared => (1, None, None),
            Mode::Permits { count, .. } => (2, Some(count), None),
            Mode::Segment { pick, .. } => match pick {
                Pick::Only(segment) => (3, Some(segment), None),
                Pick::Any { prefer } => (3, None, Some(prefer)),
            },
            // `check` lets nothing else in.
            _ => (0, None, None),
        };
        Self {
            mode,
            amount: amount.map(i64::from),
            prefer: prefer.map(i64::from),
        }
    }

    /// The mode, for a name of this size.
    pub(super) fn mode(self, size: Option<u32>) -> Mode {
        let size = size.unwrap_or(0);
        match (self.mode, self.amount) {
            (1, _) => Mode::Shared,
            (2, count) => Mode::Permits {
                count: number(count.unwrap_or(0)),
                limit: size,
            },
            (3, segment) => Mode::Segment {
                pick: match segment {
                    Some(segment) => Pick::Only(number(segment)),
                    None => Pick::Any {
                        prefer: number(self.prefer.unwrap_or(0)),
                    },
                },
                of: size,
            },
            _ => Mode::Exclusive,
        }
    }
}

/// A number that was stored from a `u32`.
pub(super) fn number(stored: i64) -> u32 {
    u32::try_from(stored).unwrap_or(u32::MAX)
}

/// Checks that a claim's mode is one of its primitive.
pub(super) fn check(claim: &Claim) -> Result<()> {
    let primitive = claim.resource.primitive();
    let suits = matches!(
        (primitive, claim.mode),
        (Primitive::Mutex, Mode::Exclusive)
            | (Primitive::ReadWrite, Mode::Exclusive | Mode::Shared)
            | (Primitive::Semaphore, Mode::Permits { .. })
            | (Primitive::Segmented, Mode::Segment { .. })
            | (Primitive::Latch, Mode::Shared)
    );
    if suits {
        return Ok(());
    }
    let message = format!("a {primitive} cannot be held as {}", claim.mode);
    Err(Error::new(ErrorKind::Unsupported, message).on(DRIVER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_round_trip() {
        let of = 7;
        for mode in [
            Mode::Exclusive,
            Mode::Shared,
            Mode::Permits {
                count: 3,
                limit: of,
            },
            Mode::Segment {
                pick: Pick::Only(0),
                of,
            },
            Mode::Segment {
                pick: Pick::Any { prefer: 6 },
                of,
            },
        ] {
            assert_eq!(Kind::of(mode).mode(Some(of)), mode);
        }
    }
}
