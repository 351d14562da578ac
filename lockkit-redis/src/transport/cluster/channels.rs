//! What is heard on the connections to one master.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::transport::{Arrival, Ears, Failure};

/// The channels that are heard on one master.
pub(super) struct Channels {
    heard: Mutex<BTreeSet<String>>,
    /// How often all were lost.
    gaps: AtomicU64,
    ears: Arc<dyn Ears>,
}

impl Channels {
    pub(super) fn new(ears: Arc<dyn Ears>) -> Self {
        Self {
            heard: Mutex::default(),
            gaps: AtomicU64::new(0),
            ears,
        }
    }

    pub(super) fn has(&self, channel: &str) -> bool {
        self.locked().contains(channel)
    }

    pub(super) fn gaps(&self) -> u64 {
        let _heard = self.locked();
        self.gaps.load(Ordering::SeqCst)
    }

    /// Notes that a channel is heard, unless all were lost since there were so many gaps.
    pub(super) fn add(&self, channel: &str, gaps: u64) -> bool {
        let mut heard = self.locked();
        let is_heard = self.gaps.load(Ordering::SeqCst) == gaps;
        if is_heard {
            heard.insert(channel.to_owned());
        }
        is_heard
    }

    fn forget_all(&self) {
        let mut heard = self.locked();
        self.gaps.fetch_add(1, Ordering::SeqCst);
        heard.clear();
    }

    fn locked(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ears for Channels {
    /// None: a channel whose slot has moved away would be refused, and whoever waits asks again for
    /// its own.
    fn channels(&self) -> Vec<String> {
        self.forget_all();
        Vec::new()
    }

    fn heard(&self, message: &[u8], reign: &str) {
        self.ears.heard(message, reign);
    }

    /// A slot has moved away. Whoever waits asks again, and hears the channel where it is now.
    fn missed(&self) {
        self.forget_all();
        self.ears.missed();
    }

    fn connected(&self, arrival: Arrival) {
        if arrival != Arrival::First {
            self.ears.missed();
        }
    }

    fn deaf(&self, failure: &Failure) {
        self.ears.deaf(failure);
    }
}

impl fmt::Debug for Channels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Channels").field(&*self.locked()).finish()
    }
}

/// Tells when the connection for requests is lost, and when it is back.
#[derive(Debug)]
pub(super) struct ResumeEars {
    pub(super) ears: Arc<dyn Ears>,
    pub(super) trouble: Arc<Notify>,
}

impl Ears for ResumeEars {
    fn channels(&self) -> Vec<String> {
        Vec::new()
    }

    fn heard(&self, _: &[u8], _: &str) {}

    fn missed(&self) {}

    fn lost(&self) {
        self.trouble.notify_one();
    }

    fn connected(&self, arrival: Arrival) {
        if arrival != Arrival::First {
            self.ears.connected(arrival);
        }
    }

    fn deaf(&self, _: &Failure) {}
}
