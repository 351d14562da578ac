//! What servers tell this client unasked, and who waits for it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use foldhash::HashMap;
use lockkit_core::{AttemptId, Fence, HoldId, Instant, Notices, Resource};
use rand::RngExt;
use rand::distr::Alphanumeric;
use tokio::sync::Notify;

use crate::transport::{Arrival, Ears, Failure};

/// The letters and digits of a client's id.
const ID: usize = 12;

/// A claim of this client that may stand in line.
#[derive(Debug)]
pub(crate) struct Standing {
    /// Rings when another attempt is worth it.
    pub(crate) news: Notify,
    progress: Mutex<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    /// When the last request left that found it in line.
    confirmed_at: Option<Instant>,
    granted: Option<(Fence, Option<u32>)>,
}

/// A grant that was pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Granted {
    pub(crate) fence: Fence,
    pub(crate) segment: Option<u32>,
    /// A moment before the server granted it; see [`Standing::granted`].
    pub(crate) sent_at: Instant,
}

impl Standing {
    /// A request that left then found it in line.
    pub(crate) fn confirm(&self, sent_at: Instant) {
        let mut progress = locked(&self.progress);
        let newest = progress.confirmed_at.unwrap_or(sent_at).max(sent_at);
        progress.confirmed_at = Some(newest);
    }

    /// The grant, if one was pushed.
    ///
    /// Its lease counts from the newest request that still found it in line: the server worked on
    /// that before it granted, so the lease ends no earlier there. How long the message was on its
    /// way does not matter, and no two clocks are compared.
    pub(crate) fn granted(&self) -> Option<Granted> {
        let mut progress = locked(&self.progress);
        let sent_at = progress.confirmed_at?;
        let (fence, segment) = progress.granted.take()?;
        Some(Granted {
            fence,
            segment,
            sent_at,
        })
    }

    fn grant(&self, fence: Fence, segment: Option<u32>) {
        locked(&self.progress).granted = Some((fence, segment));
        self.news.notify_one();
    }
}

/// The inbox of a client.
#[derive(Debug)]
pub(crate) struct Inbox {
    /// The id by which others reach this client.
    client: String,
    /// The channel to hear on each connection; empty in a cluster, where there is one per bucket.
    channel: Option<String>,
    standing: Mutex<HashMap<AttemptId, Arc<Standing>>>,
    notices: OnceLock<Notices>,
    /// The server does not let this client listen: it has to look from time to time.
    deaf: AtomicBool,
}

impl Inbox {
    /// An inbox under a fresh id; `channel` makes the name of its channel.
    pub(crate) fn new(channel: impl FnOnce(&str) -> Option<String>) -> Self {
        let mut rng = rand::rng();
        let client: String = (0..ID)
            .map(|_| char::from(rng.sample(Alphanumeric)))
            .collect();
        Self {
            channel: channel(&client),
            client,
            standing: Mutex::default(),
            notices: OnceLock::new(),
            deaf: AtomicBool::new(false),
        }
    }

    /// Where to report what is heard about holds.
    pub(crate) fn attach(&self, notices: Notices) {
        // Called once; the first sink stays.
        let _ = self.notices.set(notices);
    }

    pub(crate) fn client(&self) -> &str {
        &self.client
    }

    /// The id for others to reach it by; empty if it hears nothing, and must not be waited for.
    pub(crate) fn reachable_as(&self) -> &str {
        if self.is_deaf() { "" } else { &self.client }
    }

    pub(crate) fn is_deaf(&self) -> bool {
        self.deaf.load(Ordering::Relaxed)
    }

    /// Waits for news about an attempt.
    pub(crate) fn expect(&self, attempt: AttemptId) -> Arc<Standing> {
        let standing = Arc::new(Standing {
            news: Notify::new(),
            progress: Mutex::default(),
        });
        locked(&self.standing).insert(attempt, Arc::clone(&standing));
        standing
    }

    /// Waits no longer.
    pub(crate) fn forget(&self, attempt: AttemptId) {
        locked(&self.standing).remove(&attempt);
    }

    /// Who waits for news about this attempt.
    pub(crate) fn standing(&self, attempt: AttemptId) -> Option<Arc<Standing>> {
        locked(&self.standing).get(&attempt).map(Arc::clone)
    }

    fn ring_all(&self) {
        for standing in locked(&self.standing).values() {
            standing.news.notify_one();
        }
    }

    fn tell(&self, attempt: AttemptId, resource: &[u8], tell: impl FnOnce(&Notices, &HoldId)) {
        let resource = str::from_utf8(resource).ok().and_then(Resource::from_key);
        if let (Some(resource), Some(notices)) = (resource, self.notices.get()) {
            tell(notices, &HoldId::new(resource, attempt));
        }
    }
}

impl Ears for Inbox {
    fn channels(&self) -> Vec<String> {
        self.deaf.store(false, Ordering::Relaxed);
        self.channel.iter().cloned().collect()
    }

    /// A letter, an attempt, and what belongs to it; anything else is ignored. Only who knows the
    /// attempt, which is a secret between this client and the server, can say something about it.
    fn heard(&self, message: &[u8]) {
        let Some((letter, rest)) = message.split_first() else {
            return;
        };
        let Some((attempt, rest)) = rest.split_at_checked(16) else {
            return;
        };
        let Some(attempt) = AttemptId::from_bytes(attempt) else {
            return;
        };
        match letter {
            b'g' => {
                let Some(standing) = self.standing(attempt) else {
                    return;
                };
                match granted(rest) {
                    Some((fence, segment)) => standing.grant(fence, segment),
                    None => standing.news.notify_one(),
                }
            }
            b'w' => {
                // Who waits for one latch in this process hears of it by one message.
                let others = rest.chunks_exact(16).filter_map(AttemptId::from_bytes);
                for attempt in std::iter::once(attempt).chain(others) {
                    if let Some(standing) = self.standing(attempt) {
                        standing.news.notify_one();
                    }
                }
            }
            b'e' => self.tell(attempt, rest, Notices::gone),
            b'a' => self.tell(attempt, rest, Notices::release_requested),
            _ => {}
        }
    }

    fn missed(&self) {
        self.ring_all();
    }

    fn connected(&self, arrival: Arrival) {
        if arrival == Arrival::First {
            return;
        }
        if let Some(notices) = self.notices.get() {
            notices.resumed(arrival == Arrival::Elsewhere);
        }
        self.ring_all();
    }

    fn deaf(&self, _: &Failure) {
        self.deaf.store(true, Ordering::Relaxed);
    }
}

/// Reads `fence:segment`.
fn granted(text: &[u8]) -> Option<(Fence, Option<u32>)> {
    let (fence, segment) = str::from_utf8(text).ok()?.split_once(':')?;
    let segment = match segment {
        "" => None,
        segment => Some(segment.parse().ok()?),
    };
    Some((Fence::new(fence.parse().ok()?), segment))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing in here panics half-way through a change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
