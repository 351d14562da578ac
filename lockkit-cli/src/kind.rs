//! Which kind of lock is taken.

use std::time::Duration;

use lockkit::{DistributedLock, Guard, LockName, Locker, Primitive, Result, SegmentedLock};

use crate::args::Choice;
use crate::exit::{self, Failure};

/// Which kind of lock, and how it is to be held.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One holder at a time, in strict order or not.
    Mutex { fair: bool },
    /// The half of a read-write lock that many have.
    Shared,
    /// The half that one has.
    Exclusive,
    /// Some permits of a semaphore.
    Permits { count: u32, of: u32 },
    /// Any segment.
    Any { of: u32 },
    /// The segment of a key.
    Key { key: String, of: u32 },
}

impl Kind {
    /// What the command line asks for; clap has seen to it that it is one thing.
    ///
    /// # Errors
    ///
    /// More permits are asked for than there are.
    pub(crate) fn new(choice: Choice, fair: bool) -> Result<Self, Failure> {
        let kind = match (choice.segment_of, choice.of, choice.any_of) {
            (Some(key), Some(of), _) => Self::Key { key, of },
            (_, Some(of), _) => {
                let count = choice.permits.unwrap_or(1);
                if count > of {
                    let message = format!(
                        "--permits {count} are more than the {of} of --of {of}; ask for 1 to {of}"
                    );
                    return Err(Failure::new(exit::USAGE, "usage", message));
                }
                Self::Permits { count, of }
            }
            (_, _, Some(of)) => Self::Any { of },
            _ if choice.shared => Self::Shared,
            _ if choice.exclusive => Self::Exclusive,
            _ => Self::Mutex { fair },
        };
        Ok(kind)
    }

    /// The primitive that offers it.
    pub(crate) const fn primitive(&self) -> Primitive {
        match self {
            Self::Mutex { .. } => Primitive::Mutex,
            Self::Shared | Self::Exclusive => Primitive::ReadWrite,
            Self::Permits { .. } => Primitive::Semaphore,
            Self::Any { .. } | Self::Key { .. } => Primitive::Segmented,
        }
    }

    /// What is wrong, and the cure, where the name is in use with another number.
    pub(crate) fn mismatch(&self, name: &LockName, stored: &str) -> Option<String> {
        let (things, asked, option) = match self {
            Self::Permits { of, .. } => ("permits", of, "--of"),
            Self::Key { of, .. } => ("segments", of, "--of"),
            Self::Any { of } => ("segments", of, "--any-of"),
            Self::Mutex { .. } | Self::Shared | Self::Exclusive => return None,
        };
        Some(format!(
            "\"{name}\" has {stored} {things}, not {asked}: write {option} {stored}, or change it \
             for all with `lockkit resize {name} --{things} {asked}`"
        ))
    }

    /// The lock of this kind and name.
    pub(crate) fn lock(
        &self,
        locker: &Locker,
        name: &LockName,
        ttl: Duration,
        label: &str,
        limit: Option<Duration>,
    ) -> Lock {
        macro_rules! configured {
            ($lock:expr) => {{
                let lock = $lock.ttl(ttl).label(label);
                match limit {
                    Some(limit) => lock.wait(limit),
                    None => lock,
                }
            }};
        }
        let name = name.as_str();
        match self {
            Self::Mutex { fair: false } => Lock::of(configured!(locker.mutex(name))),
            Self::Mutex { fair: true } => Lock::of(configured!(locker.mutex(name).fair())),
            Self::Shared => Lock::of(configured!(locker.read_write(name)).read()),
            Self::Exclusive => Lock::of(configured!(locker.read_write(name)).write()),
            &Self::Permits { count, of } => {
                Lock::of(configured!(locker.semaphore(name, of)).permits(count))
            }
            &Self::Any { of } => Lock::of(configured!(locker.segmented(name, of))),
            Self::Key { key, of } => {
                Lock::Key(configured!(locker.segmented(name, *of)), key.clone())
            }
        }
    }
}

/// A lock to be taken, whatever its kind.
#[derive(Debug)]
pub(crate) enum Lock {
    /// Any of the kinds that are taken alike.
    Plain(Box<dyn DistributedLock>),
    /// The segment of a key.
    Key(SegmentedLock, String),
}

impl Lock {
    fn of(lock: impl DistributedLock + 'static) -> Self {
        Self::Plain(Box::new(lock))
    }

    /// Waits for it.
    pub(crate) async fn lock(&self) -> Result<Guard> {
        match self {
            Self::Plain(lock) => lock.lock().await,
            Self::Key(lock, key) => lock.lock_key(key).await,
        }
    }

    /// Takes it if that is possible now.
    pub(crate) async fn try_lock(&self) -> Result<Option<Guard>> {
        match self {
            Self::Plain(lock) => lock.try_lock().await,
            Self::Key(lock, key) => lock.try_lock_key(key).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Args, Command};
    use clap::Parser as _;

    fn kind(options: &str) -> Result<Kind, String> {
        let line = format!("lockkit acquire x {options}");
        let args = Args::try_parse_from(line.split_whitespace()).map_err(|e| e.to_string())?;
        let Command::Acquire(acquire) = args.command else {
            unreachable!()
        };
        Kind::new(acquire.taking.choice, acquire.taking.fair).map_err(|failure| failure.message)
    }

    #[test]
    fn each_spelling_is_one_kind() {
        let key = Kind::Key {
            key: "k".into(),
            of: 8,
        };
        for (options, expected) in [
            ("", Kind::Mutex { fair: false }),
            ("--fair", Kind::Mutex { fair: true }),
            ("--shared", Kind::Shared),
            ("--exclusive --fair", Kind::Exclusive),
            ("--of 5", Kind::Permits { count: 1, of: 5 }),
            ("--permits 5 --of 5", Kind::Permits { count: 5, of: 5 }),
            ("--any-of 8", Kind::Any { of: 8 }),
            ("--segment-of k --of 8", key),
        ] {
            assert_eq!(kind(options), Ok(expected), "{options}");
        }
    }

    #[test]
    fn two_kinds_at_once_are_refused() {
        let ways = [
            "--shared",
            "--exclusive",
            "--permits 1 --of 2",
            "--any-of 8",
            "--segment-of k --of 2",
        ];
        for (i, one) in ways.iter().enumerate() {
            for other in &ways[i + 1..] {
                assert!(kind(&format!("{one} {other}")).is_err(), "{one} {other}");
            }
        }
        for bad in [
            "--shared --of 2",
            "--any-of 8 --of 2",
            "--permits 2",
            "--segment-of k",
        ] {
            assert!(kind(bad).is_err(), "{bad}");
        }
        assert!(kind("--permits 6 --of 5").unwrap_err().contains("1 to 5"));
    }
}
