//! The commands of an operator.

use std::time::Duration;

use clap::{ArgGroup, Args as ClapArgs, ValueEnum};
use lockkit::Primitive;

use super::taking::count;
use crate::{duration, examples};

/// A kind of lock that can be held, by the word that `ls` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KindWord {
    /// One holder at a time
    Mutex,
    /// --shared and --exclusive
    Rw,
    /// Permits
    Semaphore,
    /// Segments
    Segmented,
}

impl KindWord {
    /// What it stands for.
    pub(crate) const fn primitive(self) -> Primitive {
        match self {
            Self::Mutex => Primitive::Mutex,
            Self::Rw => Primitive::ReadWrite,
            Self::Semaphore => Primitive::Semaphore,
            Self::Segmented => Primitive::Segmented,
        }
    }
}

/// List who holds and who waits, in order
///
/// One line for each holder and waiter, and for each latch that is closed. With --format json, an
/// array of objects with name, kind, fence, size (how many permits or segments there are), latch
/// (left, of), holders and waiters; each of those has label (text, host, pid), mode (exclusive,
/// shared, permits, segment), permits, segment and since; a holder also id, fence, held_ms,
/// remaining_ms, detached and asked_to_release; a waiter also fair and waited_ms. What does not
/// apply is null.
#[derive(Debug, ClapArgs)]
#[command(after_long_help = examples::help("ls"))]
pub(crate) struct Ls {
    /// Only names that begin with this
    #[arg(value_name = "PREFIX", default_value = "", hide_default_value = true)]
    pub(crate) prefix: String,
    /// Keep on listing, once a second or every DUR
    #[arg(
        short,
        long,
        value_name = "DUR",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1s",
        value_parser = duration::parse
    )]
    pub(crate) watch: Option<Duration>,
}

/// Ask whoever holds a lock to let go
///
/// Prints how many were asked. `lockkit run` says so, or ends its CMD with --on-request term; a
/// program that uses the library may hand over in its own time. What `acquire` took has nobody to
/// ask. Not every backend has a way to ask, see `lockkit backends`.
#[derive(Debug, ClapArgs)]
#[command(after_long_help = examples::help("request-release"))]
pub(crate) struct RequestRelease {
    /// Name of the lock
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Only this kind of lock [default: every kind of that name]
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) kind: Option<KindWord>,
    /// Wait this long until all who were asked have let go; exits with 75 if they have not
    #[arg(short, long, value_name = "DUR", value_parser = duration::parse)]
    pub(crate) wait: Option<Duration>,
}

/// Take a lock away from whoever holds it
///
/// Asks first if standard input is a terminal. `lockkit run` on the other side ends its CMD. If
/// there are several holders, say which.
#[derive(Debug, ClapArgs)]
#[command(after_long_help = examples::help("break"))]
pub(crate) struct Break {
    /// Name of the lock
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Only this kind of lock [default: every kind of that name]
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) kind: Option<KindWord>,
    /// Only the holder with this id, as `ls` shows or `acquire` prints it
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Every holder, if there are several
    #[arg(long, conflicts_with = "id")]
    pub(crate) all: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// Change how many permits or segments a name has
///
/// With fewer permits nothing is taken from anybody: nobody enters until enough came back. The
/// number of segments can be changed only while nobody holds or waits for one (exit code 75
/// otherwise), because a key belongs to another segment afterwards.
#[derive(Debug, ClapArgs)]
#[command(
    after_long_help = examples::help("resize"),
    group = ArgGroup::new("size").required(true)
)]
#[group(skip)]
pub(crate) struct Resize {
    /// Name of the lock
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// How many permits there are from now on, the M of `run --of M`
    #[arg(long, group = "size", value_name = "M", value_parser = count, allow_negative_numbers = true)]
    pub(crate) permits: Option<u32>,
    /// How many segments there are from now on, the M of `run --any-of M`
    #[arg(long, group = "size", value_name = "M", value_parser = count, allow_negative_numbers = true)]
    pub(crate) segments: Option<u32>,
}
