//! Where the data of tests lies.

use std::io;
use std::path::PathBuf;

use tempfile::{Builder, TempDir};

/// A new directory for data that is not needed when the machine has gone down: in memory where there
/// is room, otherwise where temporary files are.
///
/// Whoever writes to disk before each answer waits for it, and a disk that is busy, with what a
/// compiler has left to be written say, takes seconds. Then leases of a second run out, and tests
/// find out how busy the disk is. What a process leaves when it is killed is there all the same.
///
/// # Errors
///
/// If it cannot be made.
pub fn scratch(prefix: &str) -> io::Result<TempDir> {
    let mut builder = Builder::new();
    builder.prefix(prefix);
    match in_memory().and_then(|memory| builder.tempdir_in(memory).ok()) {
        Some(directory) => Ok(directory),
        None => builder.tempdir(),
    }
}

/// A place in memory with enough room.
#[cfg(target_os = "linux")]
fn in_memory() -> Option<PathBuf> {
    const MEMORY: &str = "/dev/shm";
    const TMPFS: i128 = 0x0102_1994;
    // A container may have next to nothing there.
    const ROOM: u64 = 1 << 30;
    let found = rustix::fs::statfs(MEMORY).ok()?;
    let block = u64::try_from(found.f_bsize).ok()?;
    // The type of the field differs between platforms.
    let fits = i128::from(found.f_type) == TMPFS && found.f_bavail.saturating_mul(block) >= ROOM;
    fits.then(|| MEMORY.into())
}

#[cfg(not(target_os = "linux"))]
fn in_memory() -> Option<PathBuf> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_new_and_goes_with_its_owner() {
        let (one, other) = (scratch("lockkit-").unwrap(), scratch("lockkit-").unwrap());
        assert_ne!(one.path(), other.path());
        let path = one.path().to_owned();
        std::fs::write(path.join("file"), "data").unwrap();
        assert_eq!(path.parent(), other.path().parent());
        drop(one);
        assert!(!path.exists() && other.path().exists());
    }
}
