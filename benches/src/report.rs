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
    subject: String,
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
    #[serde(flatten)]
    limit: Limit,
    ok: bool,
}

/// On which side of the bar a value must stay.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Limit {
    AtMost(f64),
    AtLeast(f64),
}

impl Limit {
    fn allows(self, value: f64) -> bool {
        match self {
            Self::AtMost(limit) => value <= limit,
            Self::AtLeast(limit) => value >= limit,
        }
    }

    fn words(self) -> String {
        match self {
            Self::AtMost(limit) => format!("<= {}", number(limit)),
            Self::AtLeast(limit) => format!(">= {}", number(limit)),
        }
    }
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
        subject: &str,
        (metric, unit): (&'static str, &'static str),
        samples: &[f64],
    ) -> f64 {
        let median = median(samples);
        self.rows.push(Row {
            suite: self.suite,
            workload,
            subject: subject.to_owned(),
            metric,
            unit,
            samples: samples.len(),
            median,
            min: samples.iter().copied().fold(f64::INFINITY, f64::min),
            max: samples.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        });
        median
    }

    /// Holds a value against a bar that it must not exceed.
    pub(crate) fn bar(
        &mut self,
        workload: &'static str,
        what: (&'static str, &'static str),
        value: f64,
        at_most: f64,
    ) {
        self.hold(workload, what, value, Limit::AtMost(at_most));
    }

    /// Holds a value against a bar that it must reach.
    pub(crate) fn bar_at_least(
        &mut self,
        workload: &'static str,
        what: (&'static str, &'static str),
        value: f64,
        at_least: f64,
    ) {
        self.hold(workload, what, value, Limit::AtLeast(at_least));
    }

    fn hold(
        &mut self,
        workload: &'static str,
        (what, unit): (&'static str, &'static str),
        value: f64,
        limit: Limit,
    ) {
        self.bars.push(Bar {
            workload,
            what,
            unit,
            value,
            limit,
            ok: limit.allows(value),
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
        for workload in self.workloads() {
            self.block(&mut text, workload)?;
        }
        writeln!(
            text,
            "\n{:<22} {:<40} {:>6} {:>10} {:>10}",
            "bar", "", "unit", "value", "limit"
        )?;
        for bar in &self.bars {
            writeln!(
                text,
                "{:<22} {:<40} {:>6} {:>10} {:>10}  {}",
                bar.workload,
                bar.what,
                bar.unit,
                number(bar.value),
                bar.limit.words(),
                if bar.ok { "ok" } else { "MISSED" }
            )?;
        }
        Ok(text)
    }

    /// Each workload once, in the order of the rows.
    fn workloads(&self) -> Vec<&'static str> {
        let mut workloads: Vec<_> = self.rows.iter().map(|row| row.workload).collect();
        workloads.dedup();
        workloads
    }

    /// A line for each subject and a column for each metric: the median, and how far the samples
    /// lie from it in percent, half their range.
    fn block(&self, text: &mut String, workload: &str) -> Result<()> {
        let rows: Vec<&Row> = self
            .rows
            .iter()
            .filter(|row| row.workload == workload)
            .collect();
        let mut metrics = Vec::new();
        let mut subjects = Vec::new();
        for row in &rows {
            push_new(&mut metrics, (row.metric, row.unit));
            push_new(&mut subjects, row.subject.as_str());
        }
        write!(text, "\n{workload:<26}")?;
        for (metric, unit) in &metrics {
            write!(text, " {:>COLUMN$}", format!("{metric}, {unit}"))?;
        }
        for subject in subjects {
            write!(text, "\n  {subject:<24}")?;
            for metric in &metrics {
                let matches =
                    |row: &&&Row| row.subject == subject && (row.metric, row.unit) == *metric;
                let cell = rows.iter().find(matches).map(|row| row.cell());
                write!(text, " {:>COLUMN$}", cell.unwrap_or_default())?;
            }
        }
        text.push('\n');
        Ok(())
    }
}

/// Wide enough for most metrics with their units.
const COLUMN: usize = 16;

impl Row {
    fn cell(&self) -> String {
        let spread = (self.max - self.min) / 2.0 / self.median * 100.0;
        let spread = if spread > 0.0 {
            format!(" ~{spread:.0}%")
        } else {
            String::new()
        };
        format!("{}{spread}", number(self.median))
    }
}

fn push_new<T: PartialEq>(list: &mut Vec<T>, new: T) {
    if !list.contains(&new) {
        list.push(new);
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
