//! The files: the database, and beside it a directory with one file for each session.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use lockkit_core::Result;

use super::config::{Config, invalid};
use super::error::file_error;

/// The name of a session: 128 random bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SessionId([u8; 16]);

impl SessionId {
    pub(super) fn random() -> Self {
        Self(rand::random())
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn from_file_name(name: &str) -> Option<Self> {
        let id = Self(u128::from_str_radix(name, 16).ok()?.to_be_bytes());
        (id.to_string() == name).then_some(id)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// Which file stands at a path: device and inode.
pub(super) type Identity = (u64, u64);

/// Where everything is.
#[derive(Clone, Debug)]
pub(super) struct Files {
    database: PathBuf,
    sessions: PathBuf,
}

impl Files {
    pub(super) fn new(config: &Config) -> Self {
        let mut sessions = config.path.clone().into_os_string();
        sessions.push(".sessions");
        Self {
            database: config.path.clone(),
            sessions: sessions.into(),
        }
    }

    pub(super) fn database(&self) -> &Path {
        &self.database
    }

    pub(super) fn writer(&self) -> PathBuf {
        self.sessions.join("writer")
    }

    pub(super) fn session(&self, id: SessionId) -> PathBuf {
        self.sessions.join(id.to_string())
    }

    /// Makes what is missing and refuses what cannot work.
    ///
    /// The database is never opened here if it exists: closing it would drop the locks that
    /// SQLite holds on it elsewhere in this process, because POSIX locks belong to the process.
    pub(super) fn prepare(&self, create: bool) -> Result<()> {
        match fs::metadata(&self.database) {
            Ok(found) if found.is_file() => {}
            Ok(_) => {
                return Err(invalid("this is not a file; give the path of a file")
                    .with("path", self.database.display()));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if !create {
                    return Err(invalid(
                        "the database does not exist; correct the path, or drop create=false",
                    )
                    .with("path", self.database.display()));
                }
                self.create_database()?;
            }
            Err(error) => return Err(file_error("look at the database", &self.database, error)),
        }
        self.refuse_network_file_systems()?;
        match DirBuilder::new().mode(0o700).create(&self.sessions) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(file_error(
                "make the directory of sessions",
                &self.sessions,
                error,
            )),
            _ => Ok(()),
        }
    }

    fn create_database(&self) -> Result<()> {
        if let Some(parent) = self.database.parent() {
            DirBuilder::new()
                .mode(0o700)
                .recursive(true)
                .create(parent)
                .map_err(|error| file_error("make the directory", parent, error))?;
        }
        match OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&self.database)
        {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(file_error("make the database", &self.database, error))
            }
            _ => Ok(()),
        }
    }

    #[cfg(target_os = "linux")]
    fn refuse_network_file_systems(&self) -> Result<()> {
        // NFS, SMB, CIFS, SMB2: neither the memory that WAL shares nor file locks reach other hosts.
        const REMOTE: [u32; 4] = [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42];
        let found = rustix::fs::statfs(&self.database)
            .map_err(|error| file_error("look at the file system", &self.database, error.into()))?;
        // The type of the field differs between platforms; the magic numbers have 32 bits.
        if REMOTE
            .iter()
            .any(|magic| i128::from(found.f_type) & 0xffff_ffff == i128::from(*magic))
        {
            return Err(invalid(
                "the database lies on a network file system, where its locks do not work; put it \
                 on a local disk",
            )
            .with("path", self.database.display()));
        }
        Ok(())
    }

    #[cfg(not(target_os = "linux"))]
    fn refuse_network_file_systems(&self) -> Result<()> {
        Ok(())
    }

    /// Which file the path leads to now; `None` if to none.
    pub(super) fn identity(&self) -> Result<Option<Identity>> {
        match fs::metadata(&self.database) {
            Ok(found) => Ok(Some((found.dev(), found.ino()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(file_error("look at the database", &self.database, error)),
        }
    }

    /// Makes the file of a new session and locks it. Whoever finds it unlocked later knows that
    /// every process that had it open is gone.
    pub(super) fn create_session(&self, id: SessionId) -> Result<File> {
        let path = self.session(id);
        let open = || {
            OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)
        };
        let file = open().or_else(|error| {
            if error.kind() != io::ErrorKind::NotFound {
                return Err(error);
            }
            // Somebody tidied the directory away.
            DirBuilder::new()
                .mode(0o700)
                .create(&self.sessions)
                .and_then(|()| open())
        });
        let file = file.map_err(|error| file_error("make a session's file", &path, error))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(error) => Err(file_error(
                "lock a session's file",
                &path,
                io::Error::other(error.to_string()),
            )),
        }
    }

    /// Whether the session's file is there and nobody has it locked. A missing file proves
    /// nothing.
    pub(super) fn is_abandoned(&self, id: SessionId) -> bool {
        // Read-only, so that closing it is no news to those who watch for the owner's close.
        File::open(self.session(id)).is_ok_and(|file| file.try_lock_shared().is_ok())
    }

    pub(super) fn has(&self, id: SessionId) -> bool {
        self.session(id).exists()
    }

    /// Removes the file of a session that is over. A left-over is swept at the next connect.
    pub(super) fn remove_session(&self, id: SessionId) {
        let _ = fs::remove_file(self.session(id));
    }

    /// Removes abandoned files of no session that `known` tells.
    pub(super) fn sweep(&self, known: impl Fn(SessionId) -> bool) {
        // Younger ones may belong to a session that is just being made.
        const AGE: Duration = Duration::from_secs(60);
        let Ok(entries) = fs::read_dir(&self.sessions) else {
            return;
        };
        for entry in entries.flatten() {
            let Some(id) = entry
                .file_name()
                .to_str()
                .and_then(SessionId::from_file_name)
            else {
                continue;
            };
            let age = entry
                .metadata()
                .and_then(|found| found.modified())
                .map(|at| at.elapsed());
            let is_old = matches!(age, Ok(Ok(age)) if age > AGE);
            if is_old && !known(id) && self.is_abandoned(id) {
                self.remove_session(id);
            }
        }
    }

    /// Rings the owner of a session: a change of the file's times, which only its owner watches.
    pub(super) fn ring(&self, id: SessionId) {
        use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, utimensat};
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_NOW,
        };
        let times = Timestamps {
            last_access: now,
            last_modification: now,
        };
        // A missing file has no owner who could listen.
        let _ = utimensat(CWD, self.session(id), &times, AtFlags::empty());
    }

    pub(super) fn size(&self) -> u64 {
        fs::metadata(&self.database).map_or(0, |found| found.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(path: &Path) -> Files {
        Files::new(&Config::parse(&format!("sqlite:{}", path.display())).unwrap())
    }

    fn is_misplaced(error: &lockkit_core::Error) -> bool {
        error.kind() == lockkit_core::ErrorKind::InvalidConfig
    }

    #[test]
    fn files_are_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/er/locks.db");
        let files = files(&path);
        files.prepare(true).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        assert_eq!(mode(&dir.path().join("deep/er/locks.db.sessions")), 0o700);
        let id = SessionId::random();
        let _file = files.create_session(id).unwrap();
        assert_eq!(mode(&files.session(id)), 0o600);
    }

    #[test]
    fn what_cannot_be_a_database_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert!(
            is_misplaced(&files(dir.path()).prepare(true).unwrap_err()),
            "a directory"
        );
        let missing = dir.path().join("missing.db");
        assert!(is_misplaced(&files(&missing).prepare(false).unwrap_err()));
        assert!(!missing.exists());
        fs::write(dir.path().join("file"), "").unwrap();
        assert!(is_misplaced(
            &files(&dir.path().join("file/x.db"))
                .prepare(true)
                .unwrap_err()
        ));
    }

    #[test]
    fn a_session_is_abandoned_once_its_file_is_closed() {
        let dir = tempfile::tempdir().unwrap();
        let files = files(&dir.path().join("locks.db"));
        files.prepare(true).unwrap();
        let id = SessionId::random();
        assert!(!files.is_abandoned(id), "a missing file proves nothing");
        let file = files.create_session(id).unwrap();
        assert!(!files.is_abandoned(id));
        let inherited = file.try_clone().unwrap();
        drop(file);
        assert!(
            !files.is_abandoned(id),
            "a child that inherited it keeps it"
        );
        drop(inherited);
        assert!(files.is_abandoned(id));
    }
}
