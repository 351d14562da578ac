//! Detached holds, for whoever comes by to release: of this process, or of all.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use lockkit_core::{HoldId, Instant};

/// A detached hold.
#[derive(Debug)]
pub(super) struct Detached {
    pub(super) id: HoldId,
    pub(super) hold: u64,
    /// Until when it may be believed in.
    pub(super) until: Instant,
}

/// Where they lie.
#[derive(Debug)]
pub(super) enum Pool {
    Memory(Mutex<Vec<Detached>>),
    /// A directory with a file for each.
    Shared(PathBuf),
}

impl Pool {
    pub(super) fn in_memory() -> Self {
        Self::Memory(Mutex::default())
    }

    pub(super) fn put(&self, detached: Detached) {
        match self {
            Self::Memory(pool) => pool
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(detached),
            Self::Shared(dir) => {
                let Detached { id, hold, until } = detached;
                let text = format!("{id} {hold} {}", until.as_nanos());
                // Complete when it gets its name. One that is lost runs out by itself.
                let (made, name) = (dir.join(format!(".{hold}")), dir.join(hold.to_string()));
                let _ = std::fs::write(&made, text).and_then(|()| std::fs::rename(made, name));
            }
        }
    }

    /// Takes one out; nobody else gets it.
    pub(super) fn take(&self) -> Option<Detached> {
        match self {
            Self::Memory(pool) => pool.lock().unwrap_or_else(PoisonError::into_inner).pop(),
            Self::Shared(dir) => {
                let mut files = std::fs::read_dir(dir).ok()?.flatten();
                let file =
                    files.find(|file| !file.file_name().to_string_lossy().starts_with('.'))?;
                let mine = dir.join(format!(".{}-{}", std::process::id(), rand::random::<u64>()));
                std::fs::rename(file.path(), &mine).ok()?;
                let text = std::fs::read_to_string(&mine).ok()?;
                std::fs::remove_file(&mine).ok()?;
                let mut words = text.split(' ');
                Some(Detached {
                    id: words.next()?.parse().ok()?,
                    hold: words.next()?.parse().ok()?,
                    until: Instant::from_nanos(words.next()?.parse().ok()?),
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_puts_in_another_takes_out_once() {
        let dir = tempfile::tempdir().unwrap();
        let pools = || [Pool::in_memory(), Pool::Shared(dir.path().into())];
        for (here, there) in pools().into_iter().zip(pools()) {
            let there = match &here {
                Pool::Memory(_) => &here,
                Pool::Shared(_) => &there,
            };
            let id = "semaphore/a.000102030405060708090a0b0c0d0e0f";
            here.put(Detached {
                id: id.parse().unwrap(),
                hold: 7,
                until: Instant::from_nanos(9),
            });
            let found = there.take().unwrap();
            assert_eq!((found.id.to_string().as_str(), found.hold), (id, 7));
            assert!(here.take().is_none() && there.take().is_none());
        }
    }
}
