//! `cargo xtask check`.

use anyhow::{Result, bail};

use crate::steps::{Steps, cargo};
use crate::tools;
use crate::workspace::{Workspace, output};

/// What must not be in a dependency tree: the tree's arguments, the crates, and why.
const CLAIMS: [(&str, &[&str], &str); 3] = [
    (
        "--package lockkit-core",
        &["mio", "socket2", "sqlx", "serde"],
        "the core has no network and no format in it",
    ),
    (
        "--package lockkit --no-default-features",
        &["mio", "socket2", "sqlx", "libsqlite3-sys"],
        "a backend whose feature is off costs nothing",
    ),
    (
        "--package lockkit --no-default-features --features sqlite",
        &[
            "rustls",
            "native-tls",
            "openssl",
            "ring",
            "aws-lc-rs",
            "sqlx-mysql",
            "sqlx-postgres",
        ],
        "a file needs neither TLS nor another database's driver",
    ),
];

/// Runs every check, the quick ones first.
pub(crate) fn run() -> Result<()> {
    let workspace = Workspace::load()?;
    let mut steps = Steps::default();

    tools::component(&mut steps, "rustfmt", "fmt")?;
    steps.run(&mut cargo("fmt --all --check"))?;
    for claim in CLAIMS {
        steps.step(&format!("cargo tree {}: {}", claim.0, claim.2), || {
            dependency_claim(claim)
        })?;
    }

    let deny = tools::cargo_deny(&mut steps, &workspace.target_dir()?)?;
    let mut licences = std::process::Command::new(deny);
    // Advisories are left to whoever can reach their database.
    steps.run(licences.args(["--all-features", "check", "bans", "licenses", "sources"]))?;

    tools::component(&mut steps, "clippy", "clippy")?;
    steps.run(&mut cargo(
        "clippy --workspace --all-targets --all-features -- --deny warnings",
    ))?;
    let mut docs = cargo("doc --workspace --no-deps --all-features");
    steps.run(docs.env("RUSTDOCFLAGS", "--deny warnings"))?;

    features(&mut steps, &workspace)?;
    steps.summary();
    Ok(())
}

/// Builds the facade with no feature, with each alone, and with all. Without its tests, whose
/// dependencies would bring features along that the library itself lacks.
fn features(steps: &mut Steps, workspace: &Workspace) -> Result<()> {
    const FACADE: &str = "check --package lockkit";
    steps.run(&mut cargo(&format!("{FACADE} --no-default-features")))?;
    for feature in workspace.features("lockkit")? {
        steps.run(&mut cargo(&format!(
            "{FACADE} --no-default-features --features {feature}"
        )))?;
    }
    steps.run(&mut cargo(&format!("{FACADE} --all-features")))
}

fn dependency_claim((args, absent, why): (&str, &[&str], &str)) -> Result<()> {
    let tree = output(&mut cargo(&format!(
        "tree --edges normal --prefix none {args}"
    )))?;
    let present = |name: &&str| {
        tree.lines()
            .any(|line| line.split(' ').next() == Some(name))
    };
    let broken: Vec<_> = absent.iter().copied().filter(present).collect();
    if !broken.is_empty() {
        bail!(
            "{} must not be in it: {why}; see\n  cargo tree {args} --invert <crate>",
            broken.join(", ")
        );
    }
    Ok(())
}
