//! The rows and bars of one run, as JSON and as a table.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;

use crate::machine::Machine;
use crate::statistics::median;

/// One figure of one subject.
#[derive(Debug, Serialize)]
struct Row {
    suite: &'static str,
    workload: &'static str,
    subject: &'static str,
    metric: &'static str,
    unit: &'static str,
    samples: usize,
    median: f64,
    min: f64,
    max: f64,
}

/// A figure that must not be passed. Missing it fails nothing: a machine may be slow or busy.
#[derive(Debug, Serialize)]
struct Bar {
    workload: &'static str,
    what: &'static str,
    unit: &'static str,
    value: f64,
    at_most: f64,
    ok: bool,
}

/// What one run has found.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    suite: &'static str,
    quick: bool,
    machine: Machine,
    rows: Vec<Row>,
    bars: Vec<Bar>,
    #[serde(skip)]
    out: PathBuf,
}

impl Report {
    /// An empty report that will be written to `out`, which is made if missing.
    pub(crate) fn new(suite: &'static str, quick: bool, out: &Path) -> Result<Self> {
        fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
        let out = out.canonicalize()?;
        Ok(Self {
            suite,
            quick,
            machine: Machine::read(),
            rows: vec![],
            bars: vec![],
            out,
        })
    }

    /// The directory of the results, on the disk that is measured.
    pub(crate) fn out(&self) -> &Path {
        &self.out
    }

    /// `full`, or `quick` in a smoke run.
    pub(crate) const fn pick<T: Copy>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    /// Adds a row and returns its median.
    pub(crate) fn row(
        &mut self,
        workload: &'static str,
        subject: &'static str,
        (metric, unit): (&'static str, &'static str),
        samples: &[f64],
    ) -> f64 {
        let median = median(samples);
        self.rows.push(Row {
            suite: self.suite,
            workload,
            subject,
            metric,
            unit,
            samples: samples.len(),
            median,
            min: samples.iter().copied().fold(f64::INFINITY, f64::min),
            max: samples.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        });
        median
    }

    /// Holds a value against its bar.
    pub(crate) fn bar(
        &mut self,
        workload: &'static str,
        (what, unit): (&'static str, &'static str),
        value: f64,
        at_most: f64,
    ) {
        self.bars.push(Bar {
            workload,
            what,
            unit,
            value,
            at_most,
            ok: value <= at_most,
        });
    }

    /// Writes `results.json` and `results.txt`, and prints the latter.
    pub(crate) fn write(&self) -> Result<()> {
        let table = self.table()?;
        print!("{table}");
        fs::write(self.out.join("results.txt"), table)?;
        let mut json = serde_json::to_string_pretty(self)?;
        json.push('\n');
        fs::write(self.out.join("results.json"), json)?;
        Ok(())
    }

    fn table(&self) -> Result<String> {
        let mut text = format!("suite {} on {}\n", self.suite, self.machine.line());
        if self.quick {
            text.push_str("A smoke run: too short for its figures to mean anything.\n");
        }
        writeln!(
            text,
            "\n{:<22} {:<26} {:<20} {:>6} {:>7} {:>10} {:>10} {:>10}",
            "workload", "subject", "metric", "unit", "samples", "median", "min", "max"
        )?;
        for row in &self.rows {
            writeln!(
                text,
                "{:<22} {:<26} {:<20} {:>6} {:>7} {:>10} {:>10} {:>10}",
                row.workload,
                row.subject,
                row.metric,
                row.unit,
                row.samples,
                number(row.median),
                number(row.min),
                number(row.max)
            )?;
        }
        writeln!(
            text,
            "\n{:<22} {:<40} {:>6} {:>10} {:>10}",
            "bar", "", "unit", "value", "at most"
        )?;
        for bar in &self.bars {
            writeln!(
                text,
                "{:<22} {:<40} {:>6} {:>10} {:>10}  {}",
                bar.workload,
                bar.what,
                bar.unit,
                number(bar.value),
                number(bar.at_most),
                if bar.ok { "ok" } else { "MISSED" }
            )?;
        }
        Ok(text)
    }
}

/// Three digits that mean something.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
