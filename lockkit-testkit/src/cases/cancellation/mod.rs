//! Every operation, dropped after every number of polls.

mod acquiring;
mod holding;

use crate::Case;

pub(super) fn cases() -> Vec<Case> {
    [acquiring::cases(), holding::cases()].concat()
}
