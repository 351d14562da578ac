//! Reasons to look whether a connection is still good.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

use crate::transport::Failure;

/// A reason to look whether the connection is still good.
#[derive(Debug, Default)]
pub(crate) struct Doubt {
    pub(super) ring: Notify,
    /// It is no good: do not even ask.
    pub(super) sure: AtomicBool,
}

impl Doubt {
    pub(crate) fn about(&self, failure: &Failure) {
        match failure {
            Failure::Silent(_) => {}
            Failure::Broken(_) => self.sure.store(true, Ordering::Release),
            // A master that was demoted, or a server that is not ready.
            Failure::Refused { code, .. } => match code.as_str() {
                "READONLY" | "MASTERDOWN" | "LOADING" | "NOAUTH" => {
                    self.sure.store(true, Ordering::Release);
                }
                _ => return,
            },
        }
        self.ring.notify_one();
    }
}
