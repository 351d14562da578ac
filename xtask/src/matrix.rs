//! `cargo xtask matrix`.

use anyhow::Result;

use crate::steps::{Steps, cargo};

/// Runs the test that compares README.md with the descriptors, and lets it write.
///
/// The matrix is made by a test of the facade because only that links every backend; this task
/// itself stays quick to build.
pub(crate) fn run() -> Result<()> {
    let mut matrix = cargo("test --workspace --all-features --test readme_matrix");
    Steps::default().run(matrix.env("LOCKKIT_REWRITE", "1"))
}
