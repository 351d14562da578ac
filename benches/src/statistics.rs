//! What is reported of a set of samples.

/// The middle of the samples; of an even number the mean of the two in the middle.
pub(crate) fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        len if len % 2 == 0 => f64::midpoint(sorted[half - 1], sorted[half]),
        _ => sorted[half],
    }
}

/// The ratio of each pair of samples, which were taken side by side.
pub(crate) fn ratios(ours: &[f64], floor: &[f64]) -> Vec<f64> {
    ours.iter()
        .zip(floor)
        .map(|(ours, floor)| ours / floor)
        .collect()
}

/// Jain's index of fairness: 1 if all got the same, 1/n if one got all.
pub(crate) fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    let count: f64 = shares.iter().map(|_| 1.0).sum();
    sum * sum / (count * squares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert!((median(&[3.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
        assert!((median(&[4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < f64::EPSILON);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn equal_shares_are_fair() {
        assert!((jain(&[2.0, 2.0]) - 1.0).abs() < f64::EPSILON);
        assert!((jain(&[4.0, 0.0]) - 0.5).abs() < f64::EPSILON);
    }
}
