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
    granted: Mutex<Option<Granted>>,
}

/// A grant that was pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Granted {
    pub(crate) fence: Fence,
    pub(crate) segment: Option<u32>,
    /// When the last request left that found the claim waiting, on our own clock: we send the time
    /// along, the server keeps it with the place, and the grant gives it back.
    ///
    /// The server worked on that request before it granted, so the lease ends there no earlier than
    /// its length after this. How long the message was on its way does not matter, nor whether it
    /// is about the place that the claim has now or about an earlier one.
    pub(crate) sent_at: Instant,
}

impl Standing {
    /// The newest grant that was pushed since this was last asked.
    pub(crate) fn granted(&self) -> Option<Granted> {
        locked(&self.granted).take()
    }

    /// A request that left then found it waiting: what was granted before is over.
    pub(crate) fn found_waiting(&self, sent_at: Instant) {
        let mut granted = locked(&self.granted);
        *granted = granted.filter(|granted| granted.sent_at >= sent_at);
    }

    fn grant(&self, granted: Granted) {
        *locked(&self.granted) = Some(granted);
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
            granted: Mutex::default(),
        });
        locked(&self.standing).insert(attempt, Arc::clone(&standing));
        standing
    }

    /// Waits no longer: it was let in, or is let go.
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

    /// Somebody asks for a hold of this client: a message that it may have missed would say so.
    pub(crate) fn asked(&self, id: &HoldId) {
        if let Some(notices) = self.notices.get() {
            notices.release_requested(id);
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
    fn heard(&self, message: &[u8], reign: &str) {
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
                match granted(rest, reign) {
                    Some(granted) => standing.grant(granted),
                    // Asking tells whether it was.
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

/// Reads `fence:segment:stamp:master`; `None` if it is not from the master itself that is listened
/// to: a replica passes on what its master says, also what reached nobody there, and was then
/// granted to somebody else.
fn granted(text: &[u8], reign: &str) -> Option<Granted> {
    let mut parts = str::from_utf8(text).ok()?.split(':');
    let fence = Fence::new(parts.next()?.parse().ok()?);
    let segment = match parts.next()? {
        "" => None,
        segment => Some(segment.parse().ok()?),
    };
    let sent_at = Instant::from_nanos(parts.next()?.parse().ok()?);
    let master = parts.next().filter(|master| !master.is_empty())?;
    if !reign.starts_with(master) {
        return None;
    }
    Some(Granted {
        fence,
        segment,
        sent_at,
    })
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing in here panics half-way through a change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MASTER: &str = "0123abcd";

    fn grant(inbox: &Inbox, attempt: AttemptId, fence: u64, sent_at: u64) {
        let mut message = vec![b'g'];
        message.extend_from_slice(attempt.as_bytes());
        message.extend_from_slice(format!("{fence}::{sent_at}:{MASTER}").as_bytes());
        inbox.heard(&message, MASTER);
    }

    /// A process that was stopped for longer than a lease finds the grant that it slept through when
    /// it stands in line again: it must not count that from its newest request.
    #[test]
    fn a_grant_of_an_earlier_place_in_line_is_not_taken_for_one_of_the_present_place() {
        let inbox = Inbox::new(|_| None);
        let attempt = AttemptId::random();
        let standing = inbox.expect(attempt);
        grant(&inbox, attempt, 7, 100);
        standing.found_waiting(Instant::from_nanos(200));
        assert_eq!(standing.granted(), None, "that place is gone");
        grant(&inbox, attempt, 7, 100);
        let late = standing.granted().unwrap();
        assert_eq!(
            late.sent_at,
            Instant::from_nanos(100),
            "and late it counts from then"
        );
        grant(&inbox, attempt, 8, 200);
        standing.found_waiting(Instant::from_nanos(200));
        assert_eq!(standing.granted().unwrap().fence, Fence::new(8));
    }

    #[test]
    fn what_nobody_can_have_said_is_ignored() {
        let inbox = Inbox::new(|_| None);
        let attempt = AttemptId::random();
        let standing = inbox.expect(attempt);
        let mut message = vec![b'g'];
        message.extend_from_slice(attempt.as_bytes());
        for text in [
            "",
            "1",
            "1:2",
            "x::1:",
            "1:x:1:",
            "1::x:",
            "1::1",
            "1::1:",
            "1::1:4567cdef",
        ] {
            inbox.heard(&[&message, text.as_bytes()].concat(), MASTER);
            assert_eq!(standing.granted(), None, "{text}");
        }
        for message in [&b""[..], b"g", b"gshort", b"?0123456789abcdef"] {
            inbox.heard(message, MASTER);
        }
    }
}
