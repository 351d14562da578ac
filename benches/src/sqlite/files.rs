//! Where the measured files live: beside the results, so on the disk that the user chose.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::Result;
use tempfile::TempDir;

use crate::contender::{Subject, Target};
use crate::report::Report;

/// A directory that vanishes with this.
#[derive(Debug)]
pub(super) struct Files(TempDir);

impl Files {
    pub(super) fn new(report: &Report) -> Result<Self> {
        Ok(Self(
            tempfile::Builder::new()
                .prefix("bench-")
                .tempdir_in(report.out())?,
        ))
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The URL of lockkit's database.
    pub(super) fn url(&self) -> String {
        format!("sqlite:{}", self.database().display())
    }

    /// The file behind that URL.
    pub(super) fn database(&self) -> PathBuf {
        self.path("locks.db")
    }

    /// A lock of each kind, for contenders.
    pub(super) fn targets(&self) -> Result<[Target; 2]> {
        let file = self.path("flock");
        File::create(&file)?;
        let target = |subject, address| Target {
            subject,
            address,
            name: "bench".to_owned(),
        };
        let flock = target(Subject::Flock, shown(&file));
        Ok([target(Subject::Lockkit, self.url()), flock])
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
