//! Modes, as scripts and records write them.

use lockkit_core::{Claim, Error, ErrorKind, Mode, Pick, Primitive, Result};

use crate::descriptor::DRIVER;

/// The text of a mode: a letter, and a number where it has one. The size is stored once, with the name.
pub(crate) fn text(mode: Mode) -> String {
    match mode {
        Mode::Shared => "s".into(),
        Mode::Permits { count, .. } => format!("p{count}"),
        Mode::Segment { pick, .. } => match pick {
            Pick::Only(segment) => format!("o{segment}"),
            Pick::Any { prefer } => format!("a{prefer}"),
        },
        // `check` lets nothing else in.
        _ => "x".into(),
    }
}

/// Reads it back, for a name of this size.
pub(crate) fn parse(text: &str, size: Option<u32>) -> Option<Mode> {
    let size = size.unwrap_or(0);
    let (letter, number) = text.split_at_checked(1)?;
    let number = || number.parse().ok();
    Some(match letter {
        "x" => Mode::Exclusive,
        // Of a hold, or of a place before a latch.
        "s" | "l" => Mode::Shared,
        "p" => Mode::Permits {
            count: number()?,
            limit: size,
        },
        "o" => Mode::Segment {
            pick: Pick::Only(number()?),
            of: size,
        },
        "a" => Mode::Segment {
            pick: Pick::Any { prefer: number()? },
            of: size,
        },
        _ => return None,
    })
}

/// The size that a claim expects, as scripts take it: empty if its kind has none.
pub(crate) fn size_text(mode: Mode) -> String {
    mode.size()
        .map_or_else(String::new, |size| size.to_string())
}

/// Checks that a claim's mode is one of its primitive.
pub(crate) fn check(claim: &Claim) -> Result<()> {
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
        let segment = |pick| Mode::Segment { pick, of };
        for mode in [
            Mode::Exclusive,
            Mode::Shared,
            Mode::Permits {
                count: 3,
                limit: of,
            },
            segment(Pick::Only(0)),
            segment(Pick::Any { prefer: u32::MAX }),
        ] {
            assert_eq!(parse(&text(mode), Some(of)), Some(mode));
        }
        for odd in ["", "p", "z", "o-1", "é"] {
            assert_eq!(parse(odd, Some(of)), None, "{odd}");
        }
    }
}
