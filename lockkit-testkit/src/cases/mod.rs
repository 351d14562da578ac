//! The cases, by topic. Their names are the specification.

mod cancellation;
mod contract;
mod detach;
mod exclusion;
mod fencing;
mod inspection;
mod latch;
mod lease;
mod lifecycle;
mod multi_lock;
mod names;
mod outages;
mod processes;
mod read_write;
mod reentrancy;
mod revocation;
mod segmented;
mod semaphore;
mod waiting;
mod wake_ups;

use crate::Case;

/// Every case of the suite.
#[must_use]
pub fn cases() -> Vec<Case> {
    [
        contract::cases(),
        exclusion::cases(),
        lifecycle::cases(),
        waiting::cases(),
        cancellation::cases(),
        lease::cases(),
        outages::cases(),
        fencing::cases(),
        names::cases(),
        reentrancy::cases(),
        read_write::cases(),
        semaphore::cases(),
        latch::cases(),
        segmented::cases(),
        multi_lock::cases(),
        revocation::cases(),
        inspection::cases(),
        detach::cases(),
        wake_ups::cases(),
        processes::cases(),
    ]
    .concat()
}

/// Lists the cases of a topic: functions, with what they need behind them.
macro_rules! topic {
    ($group:literal: $($name:ident $([$($need:ident),+])?,)+) => {
        pub(super) fn cases() -> Vec<$crate::Case> {
            vec![$($crate::Case::new(
                $group,
                stringify!($name),
                &[$($($crate::Need::$need),+)?],
                |fixture| Box::pin($name(fixture)),
            )),+]
        }
    };
}
use topic;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    #[test]
    fn titles_are_unique() {
        let cases = super::cases();
        let titles: HashSet<String> = cases.iter().map(crate::Case::title).collect();
        assert_eq!(titles.len(), cases.len());
    }
}
