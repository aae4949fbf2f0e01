//! Confidence intervals of means, by bootstrap.

use fastrand::Rng;

/// A mean with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The smallest value.
    pub least: f64,
    /// The lower end of the mean's interval.
    pub low: f64,
    /// The mean.
    pub mean: f64,
    /// The upper end of the mean's interval.
    pub high: f64,
    /// The greatest value.
    pub greatest: f64,
}

const RESAMPLES: usize = 2000;

impl Interval {
    /// Computes the interval of these values by resampling. All zero if there are no values.
    pub fn of(values: &[f64]) -> Interval {
        if values.is_empty() {
            return Interval { least: 0.0, low: 0.0, mean: 0.0, high: 0.0, greatest: 0.0 };
        }
        let (mut rng, count) = (Rng::with_seed(1), values.len());
        let mut means: Vec<f64> = (0..RESAMPLES)
            .map(|_| (0..count).map(|_| values[rng.usize(0..count)]).sum::<f64>() / count as f64)
            .collect();
        means.sort_by(f64::total_cmp);
        Interval {
            least: values.iter().copied().fold(f64::INFINITY, f64::min),
            low: means[RESAMPLES / 40],
            mean: values.iter().sum::<f64>() / count as f64,
            high: means[RESAMPLES - 1 - RESAMPLES / 40],
            greatest: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_holds_the_mean_and_is_narrower_with_more_values() {
        let values = |count: usize| -> Vec<f64> { (0..count).map(|at| (at * 37 % 11) as f64).collect() };
        let [few, many] = [11, 110].map(|count| Interval::of(&values(count)));
        assert!((few.mean - 5.0).abs() < 1e-9 && (many.mean - 5.0).abs() < 1e-9);
        assert!(few.low < 5.0 && few.high > 5.0 && few.low > few.least && few.high < few.greatest);
        assert!(many.high - many.low < 0.5 * (few.high - few.low));
    }

    #[test]
    fn about_95_of_100_intervals_hold_the_true_mean() {
        let mut rng = Rng::with_seed(2);
        let holds = (0..200).filter(|_| {
            let values: Vec<f64> = (0..40).map(|_| rng.f64()).collect();
            let interval = Interval::of(&values);
            interval.low <= 0.5 && 0.5 <= interval.high
        });
        assert!((176..=199).contains(&holds.count()));
    }
}
