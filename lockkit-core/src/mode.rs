//! How something is held, and who may go first.

/// How a claim wants to hold its resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// Alone.
    Exclusive,
    /// Together with other shared holds.
    Shared,
    /// `count` of the `limit` permits of a semaphore.
    Permits {
        /// How many permits this claim takes; at least 1.
        count: u32,
        /// How many there are in all; the same for every claim of the name.
        limit: u32,
    },
}

/// Whether a newcomer may pass those who wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Order {
    /// A newcomer may take what is free at that moment even if others wait. Fastest, because
    /// nobody has to wake up first. Whoever is first in line is passed over once at most: the
    /// next release hands over to it.
    #[default]
    Barging,
    /// Strictly first come, first served.
    Fair,
}
