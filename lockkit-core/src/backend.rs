//! The SPI: what a backend supplies, and nothing else.
//!
//! # For implementors
//!
//! A backend is *mechanism*: it turns a few small operations into requests. All *policy* is in
//! this crate and runs the same on every backend: how long to wait and when to try again, the
//! deadline of a grant, renewal, telling a loss, cancellation, drop, reentrancy, batching, and
//! retries of what failed. Do not add any of that to a backend; if a backend seems to need it,
//! the SPI is wrong.
//!
//! The rules, in the order in which they bite:
//!
//! 1. **Identity.** Everything is done for an [`AttemptId`](crate::AttemptId), which is unique per
//!    acquire call and stored with the hold and with the place in line. Each operation is
//!    idempotent for it: attempting again while it holds gives the same grant (same fence), and
//!    releasing again gives [`Released::NotHeld`].
//! 2. **Owner only.** Renewing and releasing act on exactly that attempt. An unknown, late or
//!    foreign id changes nothing.
//! 3. **Fences rise.** Each grant of a resource gets a greater token than every earlier one,
//!    whatever happened in between. Only a *shared* grant may get one that is not new: at least that
//!    of the last exclusive grant, and below that of every later one; 0 if there was none. A renewal
//!    never changes the token.
//! 4. **Renewal never revives.** Once the service gave a hold up, `renew` answers
//!    [`Renewal::Gone`] for ever.
//! 5. **Send times.** `sent_at` is read from [`Descriptor::clock`] *before* the request leaves.
//! 6. **No trace.** After `release` of an id nothing of it is left on the service: no hold, no
//!    place in line, and no later grant to it.
//! 7. **Errors mean unknown.** A request whose reply is lost may have taken effect; report the
//!    error. Core will attempt or release again, under the same id.
//! 8. **The rule is core's.** Who may enter is decided by [`admission`](crate::admission), or by the
//!    service in the same way. What is let go is handed to whoever comes next in the same step, and
//!    nobody else is woken.
//! 9. **Every call ends.** A backend bounds each request by a time-out of its own where its driver
//!    does not. Core bounds the caller besides.
//!
//! `lockkit-testkit` holds the conformance suite that checks every rule on a real server.

use std::fmt::Debug;
use std::fs::File;
use std::time::Duration;

use async_trait::async_trait;

use crate::{
    Attempt, Claim, Converted, CountDown, Descriptor, HoldId, LockName, Mode, Notices, Released,
    Renewal, Resource, Result, Snapshot, Together,
};

/// A lock service, seen through a few operations. See the [module](self) for the rules.
#[async_trait]
pub trait Backend: Debug + Send + Sync + 'static {
    /// The facts: name, guarantees, limits. The same for the life of the backend.
    fn descriptor(&self) -> &Descriptor;

    /// Takes the sink for news that nobody asked for. Called once, before anything else.
    ///
    /// A backend that notices that a hold is gone (a session that ended, an eviction, a vanished
    /// database) says so here at once instead of waiting for the next renewal.
    fn attach(&self, notices: Notices);

    /// Opens a ticket for a claim: a place in line to be, then a hold.
    ///
    /// Does no I/O. The ticket exists before the first request so that whatever becomes of that
    /// request, core knows the id to release.
    ///
    /// # Errors
    ///
    /// Whatever can be told without I/O: a closed backend, a mode that it does not offer.
    fn enter(&self, claim: Claim) -> Result<Box<dyn Ticket>>;

    /// Renews holds and places in line, one answer for each id in the order given.
    ///
    /// Called on each beat while anyone holds *or waits*, for all that is due at once, so that a
    /// session is renewed by one request and keys by few. A hold that is not to be renewed is
    /// released by core at the end of its lease, so it does no harm that its session lives on. Only
    /// asked for ids of this process. May be dropped half-way.
    async fn renew(&self, ids: &[HoldId]) -> Vec<Renewal>;

    /// Releases holds and withdraws places in line, one answer for each id in the order given.
    ///
    /// By id alone, from any process: this is how guards, cancelled waiters, detached holds and
    /// scripts let go. Wakes whoever is next. Never dropped half-way. Core does not call it for a
    /// claim of its own whose `attempt` is under way; another process may.
    async fn release(&self, ids: &[HoldId]) -> Vec<Result<Released>>;

    /// Makes a hold live by its own expiry, `ttl` from now, whatever becomes of the process that
    /// took it; for a hold that does so already, moves that expiry. From any process.
    async fn extend(&self, id: &HoldId, ttl: Duration) -> Renewal;

    /// Who holds and who waits for one resource, in the service's own order.
    async fn inspect(&self, resource: &Resource) -> Result<Snapshot>;

    /// The same for each resource that is not [idle](Snapshot::is_idle) and whose name begins with
    /// `prefix`, ordered by kind and name.
    async fn list(&self, prefix: &str) -> Result<Vec<Snapshot>>;

    /// Takes a hold away from its holder on an operator's word, and tells the holder if it lives.
    /// Of several holders of one resource, exactly this one.
    ///
    /// The next grant carries a greater fence, as after any release. The id of a place in line takes
    /// that away; a claim that is still waiting notices and goes to the end of the line.
    async fn evict(&self, id: &HoldId) -> Result<Released>;

    /// The OS file lock that shows this process to be alive, for backends that keep one.
    ///
    /// A child process that inherits it keeps the hold from being freed when this process dies,
    /// until the child has ended too or the lease runs out.
    fn session_file(&self, id: &HoldId) -> Option<File>;

    /// Tries to hold several resources at once: all, or none. Nobody waits.
    ///
    /// The claims are for different resources, sorted, and have [`Claim::wait`] unset. Not dropped
    /// half-way; after an error every id is released. A backend that cannot do it in one step keeps
    /// the default, and core takes one after the other.
    async fn attempt_all(&self, _claims: &[Claim]) -> Result<Together> {
        Ok(Together::OneByOne)
    }

    /// Changes in one step how a hold is held: from exclusive to shared, which lets in the readers
    /// that come next; or from shared to exclusive, if nobody else holds and nobody waits.
    ///
    /// A hold that is held so already is [`Converted::Done`], with its fence. To exclusive is a new
    /// grant, with a greater fence; to shared keeps the fence.
    async fn convert(&self, id: &HoldId, mode: Mode) -> Result<Converted>;

    /// Asks every live holder of a resource to let go; how many were asked. Their processes hear
    /// of it through [`Notices::release_requested`]; nothing else happens.
    async fn request_release(&self, resource: &Resource) -> Result<usize>;

    /// Changes the [size](crate::Mode::size) stored with a name, whether or not it had one.
    ///
    /// * Of a semaphore, at any time. Who holds keeps its permits even if there are more than the
    ///   new limit; who waits, waits for the new one, and whoever asks for more than that is woken
    ///   to be told by its next attempt.
    /// * Of a segmented lock, only while it is idle: a key belongs to another segment afterwards.
    ///   `false` if it is not.
    async fn set_size(&self, resource: &Resource, size: u32) -> Result<bool>;

    /// Sets the count of a latch, and forgets who took part before; 0 makes it unset. `false`, and
    /// no change, while it is closed, for somebody may be counting.
    ///
    /// Who waits for a latch is a claim like any other, in [`Mode::Shared`]. It is `Held` if the latch
    /// is open, and nothing is left of it. One that stands in line when the latch opens is `Held`
    /// from then on, even if the latch is set anew before it looks, until its id is released, which
    /// core does once it knows. A latch that is not set is not open.
    async fn set_latch(&self, resource: &Resource, count: u32) -> Result<bool>;

    /// Counts a latch down for a participant, once for each since the latch was set. At 0 everybody
    /// who waits is woken.
    async fn count_down(&self, resource: &Resource, participant: &LockName) -> Result<CountDown>;

    /// Asks the service whether it is well: facts for people, such as version and settings that
    /// matter for safety, as name and value. Where there are servers, the facts about each come after
    /// one with the name `server` and its address; what is about all of them comes before the first.
    async fn probe(&self) -> Result<Vec<(&'static str, String)>>;

    /// Ends the backend: sessions, connections, tasks. Called once, after the last release. What was
    /// on its way for callers that are gone has arrived, or never will, when this returns.
    async fn close(&self) -> Result<()>;
}

/// A place in line, then a hold. Core owns it and calls `attempt` and `changed` in turn, the
/// shape of a condition variable: `while busy { changed }`.
///
/// Dropping a ticket does nothing on the service. Core releases by id what is to be let go, and
/// drops the ticket of a granted claim because the id is all that a hold needs.
#[async_trait]
pub trait Ticket: Debug + Send {
    /// Tries to hold; if busy and [`Claim::wait`] is set, makes sure of a place in line.
    ///
    /// Never dropped half-way. After an error it may be called again: same id, same effect.
    async fn attempt(&mut self) -> Result<Attempt>;

    /// Returns when another attempt is worth it. Dropped freely.
    ///
    /// Must also return for a release that happened after the *start* of the last `attempt`:
    /// subscribe first, then try. Waking too often costs a request; waking too late costs the
    /// user the recheck timer that core runs beside it.
    async fn changed(&mut self);
}
