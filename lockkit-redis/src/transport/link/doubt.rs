//! Reasons to look whether a connection is still good.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::transport::Failure;

/// Of the time that a request may take, the part after which it says something if whoever asked gives
/// up on it: less is no sign of anything.
const TELLING: u32 = 10;

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

/// A request that is on its way.
///
/// Core gives up on a renewal after a third of its lease, which may be long before the time limit of
/// the request: then nobody else would tell that the connection is silent.
#[derive(Debug)]
pub(crate) struct Unanswered<'a> {
    doubt: Option<&'a Doubt>,
    telling_from: Instant,
}

impl<'a> Unanswered<'a> {
    /// One that leaves now, and may take so long.
    pub(crate) fn new(doubt: &'a Doubt, limit: Duration) -> Self {
        Self {
            doubt: Some(doubt),
            telling_from: Instant::now() + limit / TELLING,
        }
    }

    /// It has come to an end.
    pub(crate) fn ended(mut self) {
        self.doubt = None;
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if let Some(doubt) = self.doubt
            && Instant::now() >= self.telling_from
        {
            doubt.ring.notify_one();
        }
    }
}
