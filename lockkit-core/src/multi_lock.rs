//! Several locks as one.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::acquire::Patience;
use crate::end::End;
use crate::group::{Group, Parts};
use crate::terms::Terms;
use crate::{Error, ErrorKind, Guard, Mode, Mutex, Result};

/// Several mutexes, of one locker or of several, as one lock: all or nothing.
///
/// Made by [`Locker::multi_lock`](crate::Locker::multi_lock) or [`across`](Self::across). A name
/// given twice counts once. The guard is lost when any part is, and releases in reverse.
///
/// # How it never deadlocks
///
/// * The names of one locker are asked for in one request where the backend can do that; otherwise,
///   or if one is busy, one after the other in the order of the names, which is the same for
///   everybody, so no circle of waiting can close (Havender, *Avoiding deadlock in multitasking
///   systems*, 1968).
/// * Between lockers no order can be agreed on, so nobody waits at one while holding another: if one
///   is busy, all are let go, and that one is waited for first (the algorithm of C++'s `std::lock`).
///   Where several of them are busy nearly all the time, that may take long: bound the
///   [wait](Self::wait).
///
/// Clones of a locker are one locker. Two lockers made for one service are not, and a name given
/// through both would wait for itself.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> lockkit_core::Result<()> {
/// use lockkit_core::{Locker, Memory, MultiLock};
///
/// let locker = Locker::new(Memory::new())?;
/// let transfer = locker.multi_lock(["accounts/7", "accounts/3"]);
/// let guard = transfer.lock().await?;
/// let names: Vec<_> = guard.holds().map(|(id, _)| id.resource().name().as_str()).collect();
/// assert_eq!(names, ["accounts/3", "accounts/7"]);
/// assert!(locker.mutex("accounts/3").try_lock().await?.is_none());
/// # drop(guard);
///
/// // Across two services.
/// let other = Locker::new(Memory::new())?;
/// let both = MultiLock::across([locker.mutex("a"), other.mutex("b")]);
/// assert!(both.try_lock().await?.is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a lock does nothing until it is taken"]
pub struct MultiLock {
    locks: Vec<Mutex>,
    wait: Option<Duration>,
}

/// The longest pause before everything is tried again.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

impl MultiLock {
    /// Joins mutexes of any lockers. Each keeps its own lease, order and label; how long to wait is
    /// said once, by [`wait`](Self::wait).
    pub fn across(locks: impl IntoIterator<Item = Mutex>) -> Self {
        Self {
            locks: locks.into_iter().collect(),
            wait: None,
        }
    }

    /// How long to wait at most for all of them together, instead of for ever. Zero is one attempt.
    pub const fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// The lease of every part, instead of its own.
    pub fn ttl(self, ttl: Duration) -> Self {
        self.each(|lock| lock.ttl(ttl))
    }

    /// First come, first served at every part; see [`Mutex::fair`].
    pub fn fair(self) -> Self {
        self.each(Mutex::fair)
    }

    /// A text that shows people who holds or waits, at every part; 200 bytes at most.
    pub fn label(self, label: impl Into<Arc<str>>) -> Self {
        let label = label.into();
        self.each(|lock| lock.label(Arc::clone(&label)))
    }

    fn each(mut self, change: impl Fn(Mutex) -> Mutex) -> Self {
        self.locks = self.locks.into_iter().map(change).collect();
        self
    }

    /// Waits until all of them are ours.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Timeout`] if [`wait`](Self::wait) ran out; [`ErrorKind::InvalidArgument`] if
    /// there are no names, or one lock has an owner; and what [`Mutex::lock`] says of each. After
    /// an error none is held.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future at any point leaves nothing behind.
    pub async fn lock(&self) -> Result<Guard> {
        if self.wait == Some(Duration::ZERO) {
            return self.try_lock().await?.ok_or_else(|| self.busy_error());
        }
        let groups = self.groups()?;
        let end = End::after(self.wait);
        let mut first = 0;
        let mut pause = Duration::from_millis(1);
        loop {
            match self.round(&groups, first, end).await? {
                Round::Held(guard) => return Ok(guard),
                Round::Busy(group) => first = group,
            }
            // Whoever else let go and tries again now should not meet us each time.
            let chance = rand::random_range(0.5..1.5);
            tokio::time::sleep(pause.mul_f64(chance)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            if end.is_over() {
                return Err(self.busy_error());
            }
        }
    }

    /// Takes all of them if all are free; `None`, and none is held, otherwise.
    ///
    /// # Errors
    ///
    /// As [`lock`](Self::lock), except that it never waits and so never times out.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future at any point leaves nothing behind.
    pub async fn try_lock(&self) -> Result<Option<Guard>> {
        let mut parts = Parts::default();
        for group in self.groups()? {
            match group.try_hold(End::NEVER).await? {
                Some(more) => parts.add(more),
                None => {
                    parts.let_go().await;
                    return Ok(None);
                }
            }
        }
        Ok(Guard::join(parts.sorted()))
    }

    /// Waits for one group with nothing held, then tries the others.
    async fn round(&self, groups: &[Group], first: usize, end: End) -> Result<Round> {
        let mut parts = Parts::default();
        parts.add(groups[first].hold(end).await?);
        for (number, group) in groups.iter().enumerate() {
            if number == first {
                continue;
            }
            let busy = match group.try_hold(end).await {
                Ok(Some(more)) => {
                    parts.add(more);
                    continue;
                }
                Ok(None) => Ok(Round::Busy(number)),
                // Waiting for that group first tells an outage from a lost reply.
                Err(error) if error.is_retryable() => Ok(Round::Busy(number)),
                Err(error) => Err(error),
            };
            parts.let_go().await;
            return busy;
        }
        match Guard::join(parts.sorted()) {
            Some(guard) if guard.is_held() => Ok(Round::Held(guard)),
            // A part was lost while others were waited for.
            Some(_) => Ok(Round::Busy(first)),
            None => Err(none()),
        }
    }

    /// Checks everything that can be checked without I/O.
    fn groups(&self) -> Result<Vec<Group>> {
        let mut groups: Vec<Group> = Vec::new();
        for Mutex { terms } in &self.locks {
            if terms.owner.is_some() {
                let message = "a multi-lock is not reentrant; drop `owner` from its locks";
                return Err(terms.core.error(ErrorKind::InvalidArgument, message));
            }
            let request = terms.request(Mode::Exclusive, Patience::None)?;
            let known = |group: &&mut Group| Arc::ptr_eq(&group.core, &terms.core);
            match groups.iter_mut().find(known) {
                Some(group) => group.requests.push(request),
                None => groups.push(Group {
                    core: Arc::clone(&terms.core),
                    requests: vec![request],
                }),
            }
        }
        if groups.is_empty() {
            return Err(none());
        }
        for group in &mut groups {
            group.requests.sort_by(|a, b| a.resource.cmp(&b.resource));
            group.requests.dedup_by(|a, b| a.resource == b.resource);
        }
        Ok(groups)
    }

    fn busy_error(&self) -> Error {
        match self.locks.first() {
            Some(Mutex { terms }) => {
                let message = "somebody else held at least one of the locks";
                terms
                    .core
                    .error(ErrorKind::Timeout, message)
                    .with("names", Names(&self.locks))
            }
            None => none(),
        }
    }
}

/// What one round brought.
enum Round {
    Held(Guard),
    /// Nothing is held; this group was not free.
    Busy(usize),
}

fn none() -> Error {
    let message = "a multi-lock of no names locks nothing; give it at least one";
    Error::new(ErrorKind::InvalidArgument, message)
}

/// The names, for people.
struct Names<'a>(&'a [Mutex]);

impl fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (
            number,
            Mutex {
                terms: Terms { name, .. },
            },
        ) in self.0.iter().enumerate()
        {
            let comma = if number == 0 { "" } else { ", " };
            match name {
                Ok(name) => write!(f, "{comma}{name}")?,
                Err(_) => write!(f, "{comma}?")?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for MultiLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MultiLock")
            .field("locks", &self.locks)
            .field("wait", &self.wait)
            .finish()
    }
}
