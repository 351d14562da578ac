//! Which rules are kept, and what must never be.

/// The rules that nodes keep: all, or one is left out to see it missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rules {
    Whole,
    /// A node confirms without looking at its counter.
    ConfirmUnchecked,
    /// A node takes a hold back without looking at its counter.
    RepairUnchecked,
}

/// What no state may show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Violation {
    /// Two grants with one token.
    SameToken,
    /// A grant with a token that is not above that of an earlier one.
    NotRising,
    /// A hold was renewed although somebody else was granted since.
    Revived,
}
