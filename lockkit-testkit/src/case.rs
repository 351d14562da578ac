//! Cases as data.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use lockkit_core::{FenceClass, Primitive};

use crate::{Fixture, Harness, Outcome, Time};

/// The body of a case.
pub type Run = fn(Arc<Fixture>) -> Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// One thing that every backend must do.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Case {
    /// The topic.
    pub group: &'static str,
    /// What must be so, as a sentence with underscores.
    pub name: &'static str,
    /// What the backend must claim for this case to apply.
    pub needs: &'static [Need],
    /// The body.
    pub run: Run,
}

impl Case {
    /// A case of your own, to run beside those of the suite.
    #[must_use]
    pub const fn new(
        group: &'static str,
        name: &'static str,
        needs: &'static [Need],
        run: Run,
    ) -> Self {
        Self {
            group,
            name,
            needs,
            run,
        }
    }

    /// `group::name`, under which it is listed and filtered.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{}::{}", self.group, self.name)
    }

    /// The first thing that this case needs and the backend does not have.
    #[must_use]
    pub fn missing(&self, harness: &dyn Harness) -> Option<Need> {
        let needs = [Need::Mutex].into_iter().chain(self.needs.iter().copied());
        needs.into_iter().find(|need| !need.met_by(harness))
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Case")
            .field(&self.title())
            .field(&self.needs)
            .finish()
    }
}

/// What a case needs of a backend. One that lacks it has the case reported as ignored, with the
/// need in its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Need {
    /// Mutexes at all; every case needs them.
    Mutex,
    /// Read-write locks.
    ReadWrite,
    /// Semaphores.
    Semaphore,
    /// Latches.
    Latch,
    /// Segmented locks.
    Segmented,
    /// Strict first-come order: [`Descriptor::fair`](lockkit_core::Descriptor::fair).
    Fair,
    /// Fencing tokens: a [`FenceClass`] other than `None`.
    Fences,
    /// Places in line for those who wait: [`Descriptor::line`](lockkit_core::Descriptor::line).
    Line,
    /// A way to ask holders to let go:
    /// [`Descriptor::revocation`](lockkit_core::Descriptor::revocation).
    Revocation,
    /// Child processes that reach the same service: [`Harness::url`].
    Processes,
    /// The real clock.
    RealTime,
}

impl Need {
    /// Whether this backend has it.
    #[must_use]
    pub fn met_by(self, harness: &dyn Harness) -> bool {
        let descriptor = harness.descriptor();
        match self {
            Self::Mutex => descriptor.supports(Primitive::Mutex),
            Self::ReadWrite => descriptor.supports(Primitive::ReadWrite),
            Self::Semaphore => descriptor.supports(Primitive::Semaphore),
            Self::Latch => descriptor.supports(Primitive::Latch),
            Self::Segmented => descriptor.supports(Primitive::Segmented),
            Self::Fair => descriptor.fair,
            Self::Line => descriptor.line,
            Self::Revocation => descriptor.revocation,
            Self::Fences => descriptor.fence != FenceClass::None,
            Self::Processes => harness.url().is_some() && harness.time() == Time::Real,
            Self::RealTime => harness.time() == Time::Real,
        }
    }

    /// The label of the cases that are ignored for want of it.
    #[must_use]
    pub const fn absence(self) -> &'static str {
        match self {
            Self::Mutex => "no mutex",
            Self::ReadWrite => "no read-write lock",
            Self::Semaphore => "no semaphore",
            Self::Latch => "no latch",
            Self::Segmented => "no segmented lock",
            Self::Fair => "no fair order",
            Self::Fences => "no fences",
            Self::Line => "no line",
            Self::Revocation => "no way to reach a holder",
            Self::Processes => "no other processes",
            Self::RealTime => "no real clock",
        }
    }
}
