//! What a backend promises.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::{Clock, Error, ErrorKind, Primitive, Result};

/// How far mutual exclusion can be relied on, given that clock rates differ by less than 1 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Guarantee {
    /// Every operation takes effect at one instant, and an acknowledged one survives what the
    /// service survives.
    Linearizable,
    /// The same, as long as the one server or disk that holds the state survives.
    DurableSingle,
    /// Mutual exclusion can fail, for instance in a failover to a replica that lags behind. Guard
    /// what matters with the fencing token.
    BestEffort,
}

impl fmt::Display for Guarantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Linearizable => "linearizable",
            Self::DurableSingle => "durable-single",
            Self::BestEffort => "best-effort",
        })
    }
}

/// How far fencing tokens can be relied on to rise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FenceClass {
    /// They rise across crash and restart of the service.
    Durable,
    /// They rise unless the service loses acknowledged writes.
    BestEffort,
    /// There are none.
    None,
}

impl fmt::Display for FenceClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Durable => "durable",
            Self::BestEffort => "best-effort",
            Self::None => "none",
        })
    }
}

/// The facts about a backend, as data: the support matrix is made of these, and the conformance
/// suite tests what they claim.
#[derive(Clone, Debug)]
pub struct Descriptor {
    /// The one word for this backend: feature, URL scheme, metric and error label.
    pub driver: &'static str,
    /// How far mutual exclusion can be relied on.
    pub guarantee: Guarantee,
    /// How far fencing tokens can be relied on.
    pub fence: FenceClass,
    /// The primitives that it offers.
    pub primitives: &'static [Primitive],
    /// The lease times that it grants, both ends included.
    pub ttl: RangeInclusive<Duration>,
    /// Whether it keeps strict first-come order where asked to, for which it needs a
    /// [`line`](Self::line).
    pub fair: bool,
    /// Whether those who wait have places in line: the service knows and shows them, and a release
    /// tells whoever is next. Without a line who waits asks again and again, the service shows
    /// nobody, and luck decides who is next.
    pub line: bool,
    /// Whether a live holder can be [asked to let go](crate::Locker::request_release).
    pub revocation: bool,
    /// Whether it takes several names in one request
    /// ([`attempt_all`](crate::Backend::attempt_all)); core takes one after the other if not.
    pub at_once: bool,
    /// How a waiter learns of a release, in a few words for the support matrix.
    pub wake_up: &'static str,
    /// When the locks of a killed process are free, in a few words for the support matrix.
    pub after_crash: &'static str,
    /// The clock its leases are counted on.
    pub clock: Clock,
}

impl Descriptor {
    /// Whether this backend offers `primitive`.
    #[must_use]
    pub fn supports(&self, primitive: Primitive) -> bool {
        self.primitives.contains(&primitive)
    }

    /// Checks that this backend offers `primitive`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`], naming both.
    pub fn require(&self, primitive: Primitive) -> Result<()> {
        if self.supports(primitive) {
            return Ok(());
        }
        let message =
            format!("this backend has no {primitive}; use another, `lockkit backends` lists them");
        Err(self.unsupported(message))
    }

    /// Checks that this backend keeps strict first-come order.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`], naming the backend.
    pub fn require_fair(&self) -> Result<()> {
        if self.fair {
            return Ok(());
        }
        Err(self.unsupported(
            "this backend keeps no order; drop `fair`, or use another, `lockkit backends` lists \
             them",
        ))
    }

    /// Checks that this backend can ask a holder to let go.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`], naming the backend.
    pub fn require_revocation(&self) -> Result<()> {
        if self.revocation {
            return Ok(());
        }
        Err(self.unsupported(
            "this backend cannot ask a holder to let go; evict the hold, or use another backend, \
             `lockkit backends` lists them",
        ))
    }

    fn unsupported(&self, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Unsupported, message).on(self.driver)
    }

    /// Checks a lease time.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`], naming the limit that was passed.
    pub fn check_ttl(&self, ttl: Duration) -> Result<()> {
        if self.ttl.contains(&ttl) {
            return Ok(());
        }
        let message = format!(
            "a lease of {ttl:?} is out of range; choose {:?} to {:?}",
            self.ttl.start(),
            self.ttl.end()
        );
        Err(Error::new(ErrorKind::InvalidArgument, message).on(self.driver))
    }
}
