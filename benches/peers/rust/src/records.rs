//! What the tasks have seen, and the line of JSON made of it.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::options::Options;
use crate::witness::Witness;

/// One operation: when it was asked for and how long it took to be granted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    pub(crate) asked: Instant,
    pub(crate) took: Duration,
}

/// One task's own numbers.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) visits: u64,
    pub(crate) errors: u64,
    /// Those that ended in the counted window.
    pub(crate) operations: Vec<Operation>,
    /// Also of the one in flight when the window closed.
    pub(crate) max: Duration,
}

/// The line of JSON; latencies in microseconds.
#[derive(Debug, Serialize)]
pub(crate) struct Report<'a> {
    peer: &'a str,
    version: &'a str,
    workload: String,
    clients: usize,
    tasks: usize,
    seconds: u64,
    ops: usize,
    ops_s: f64,
    mean_us: f64,
    p50_us: f64,
    p95_us: f64,
    p99_us: f64,
    max_us: f64,
    violations: u64,
    errors: u64,
    jain: f64,
    /// How many times the unluckiest operation was overtaken by one that was asked for later.
    overtaken: usize,
}

impl<'a> Report<'a> {
    pub(crate) fn new(
        options: &'a Options,
        version: &'a str,
        witness: &Witness,
        records: &[Record],
    ) -> Self {
        let counts: Vec<f64> = records.iter().map(|r| r.operations.len() as f64).collect();
        let max = records.iter().map(|r| r.max).max().unwrap_or_default();
        let operations: Vec<Operation> = records
            .iter()
            .flat_map(|r| &r.operations)
            .copied()
            .collect();
        let mut took: Vec<Duration> = operations.iter().map(|o| o.took).collect();
        took.sort_unstable();
        let ops = took.len();
        let total: Duration = took.iter().sum();
        let at = |quantile: f64| {
            let rank = (quantile * ops as f64) as usize;
            took.get(rank.min(ops.saturating_sub(1)))
                .map_or(0.0, |d| micros(*d))
        };
        Self {
            peer: &options.peer,
            version,
            workload: options.workload.name(),
            clients: options.clients,
            tasks: options.tasks,
            seconds: options.seconds,
            ops,
            ops_s: ops as f64 / options.seconds as f64,
            mean_us: micros(total) / (ops.max(1) as f64),
            p50_us: at(0.50),
            p95_us: at(0.95),
            p99_us: at(0.99),
            max_us: micros(max),
            violations: witness.violations(records.iter().map(|r| r.visits).sum()),
            errors: records.iter().map(|r| r.errors).sum(),
            jain: jain(&counts),
            overtaken: if options.workload.is_contended() {
                overtaken(&operations)
            } else {
                0
            },
        }
    }
}

/// Jain's index of fairness: 1 if all got the same, 1/n if one got all.
fn jain(counts: &[f64]) -> f64 {
    let sum: f64 = counts.iter().sum();
    let squares: f64 = counts.iter().map(|n| n * n).sum();
    if squares > 0.0 {
        sum * sum / (squares * counts.len() as f64)
    } else {
        0.0
    }
}

/// The most grants that went to a later request before an earlier one had its own.
fn overtaken(operations: &[Operation]) -> usize {
    let mut by_asked: Vec<usize> = (0..operations.len()).collect();
    by_asked.sort_unstable_by_key(|&i| operations[i].asked);
    let mut by_granted: Vec<(usize, Instant)> = by_asked
        .iter()
        .enumerate()
        .map(|(rank, &i)| (rank, operations[i].asked + operations[i].took))
        .collect();
    by_granted.sort_unstable_by_key(|&(_, granted)| granted);
    // A Fenwick tree over the ranks of those granted so far.
    let mut granted = vec![0; operations.len() + 1];
    let mut most = 0;
    for (before, &(rank, _)) in by_granted.iter().enumerate() {
        let mut earlier = 0;
        let mut i = rank;
        while i > 0 {
            earlier += granted[i];
            i &= i - 1;
        }
        most = most.max(before - earlier);
        let mut i = rank + 1;
        while i < granted.len() {
            granted[i] += 1;
            i += i & i.wrapping_neg();
        }
    }
    most
}

fn micros(duration: Duration) -> f64 {
    (duration.as_nanos() / 10) as f64 / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_while_others_pass_is_overtaken() {
        let start = Instant::now();
        let operation = |asked, granted| Operation {
            asked: start + Duration::from_millis(asked),
            took: Duration::from_millis(granted - asked),
        };
        assert_eq!(
            overtaken(&[operation(0, 10), operation(1, 11), operation(2, 12)]),
            0
        );
        assert_eq!(
            overtaken(&[operation(0, 12), operation(1, 10), operation(2, 11)]),
            2
        );
        assert_eq!(overtaken(&[]), 0);
    }
}
