//! How long to wait.

use std::time::Duration;

use crate::args;
use crate::duration::short;

/// How long to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// One look.
    None,
    /// So long at most.
    Limited(Duration),
    /// For ever.
    Endless,
}

impl Patience {
    /// The longest time to wait; `None` for ever.
    pub(crate) const fn limit(self) -> Option<Duration> {
        match self {
            Self::None => Some(Duration::ZERO),
            Self::Limited(limit) => Some(limit),
            Self::Endless => None,
        }
    }

    /// What to say of a wait for `what` that was in vain: `none` if it was only one look.
    pub(crate) fn in_vain(self, what: &str, none: &str) -> String {
        match self {
            Self::Limited(limit) => format!("gave up waiting for {what} after {}", short(limit)),
            Self::None | Self::Endless => none.to_owned(),
        }
    }
}

impl From<&args::Patience> for Patience {
    fn from(args: &args::Patience) -> Self {
        match args.wait {
            _ if args.no_wait => Self::None,
            Some(Duration::ZERO) => Self::None,
            Some(limit) => Self::Limited(limit),
            None => Self::Endless,
        }
    }
}
