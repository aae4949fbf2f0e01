//! Noise: the deviation of times by disturbance, and the intervals that follow from it.
//!
//! Disturbances multiply. Noise is a standard deviation of logarithms, so 0.05 is five percent. It is estimated from
//! the residuals of a fitted law and from repeated runs. Few times give a poor estimate, so the bootstrap redraws it
//! for each replicate from a chi-squared distribution. The intervals are then Student's, which are wide if there are
//! few times.

use std::fmt;

use fastrand::Rng;

use crate::diagnose::times::Point;

/// The number of replicates of the bootstrap.
pub const REPLICATES: usize = 400;
/// A fixed seed, so that equal times give equal intervals.
const SEED: u64 = 0x6772_6973_746d_696c;
/// The share that an interval leaves out on each side. It holds nine of ten.
const TAIL: f64 = 0.05;

/// The deviations of a difference that chance exceeds in one of ten cases.
const CHANCE: f64 = 1.645;

/// A number, with the interval that holds the true one in nine of ten cases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The best single estimate.
    pub value: f64,
    /// The lower end.
    pub from: f64,
    /// The upper end; may be infinite.
    pub to: f64,
}

impl Interval {
    /// Makes the interval from the values of all replicates.
    pub(crate) fn of(value: f64, mut answers: Vec<f64>) -> Interval {
        answers.sort_by(f64::total_cmp);
        let at = |share: f64| answers[(share * (answers.len() - 1) as f64).round() as usize];
        Interval { value, from: at(TAIL).min(value), to: at(1.0 - TAIL).max(value) }
    }

    /// Returns true if `value` lies in the interval.
    pub fn holds(&self, value: f64) -> bool {
        (self.from..=self.to).contains(&value)
    }
}

/// Shows two significant digits.
impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: f64| match value {
            _ if value == f64::INFINITY => "any".to_owned(),
            _ if value.abs() < 5e-6 => "0".to_owned(),
            _ => format!("{value:.*}", (1 - value.abs().log10().floor() as i32).max(0) as usize),
        };
        write!(f, "{} ({} to {})", shown(self.value), shown(self.from), shown(self.to))
    }
}

/// The noise of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    deviation: f64,
    /// The degrees of freedom of the estimate.
    freedom: usize,
}

/// Returns the variance of the median of `runs`, relative to that of one run.
fn of_median(runs: usize) -> f64 {
    use std::f64::consts::FRAC_PI_2;
    FRAC_PI_2 / (runs as f64 + FRAC_PI_2 - 1.0)
}

/// A sum of squares and its degrees of freedom.
type Squares = (f64, usize);

fn within(points: &[Point]) -> Squares {
    points.iter().fold((0.0, 0), |(sum, freedom), point| {
        let logs: Vec<f64> = point.seconds.iter().map(|seconds| seconds.ln()).collect();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        (sum + logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>(), freedom + logs.len() - 1)
    })
}

impl Noise {
    /// Estimates noise from repeated runs; `None` if no number of workers ran twice.
    pub fn of_repeats(points: &[Point]) -> Option<Noise> {
        let (squares, freedom) = within(points);
        (freedom > 0).then(|| Noise { deviation: (squares / freedom as f64).sqrt(), freedom })
    }

    /// Estimates noise from the residuals of a law with `parameters`, and from repeated runs if both agree.
    pub fn of_fit(points: &[Point], residuals: &[f64], parameters: usize) -> Option<Noise> {
        let left: f64 = points
            .iter()
            .zip(residuals)
            .map(|(point, residual)| residual.powi(2) / of_median(point.seconds.len()))
            .sum();
        let (between, within) = ((left, points.len().checked_sub(parameters)?), within(points));
        if between.1 == 0 {
            return Noise::of_repeats(points);
        }
        let variance = |(squares, freedom): Squares| squares / freedom.max(1) as f64;
        // Points that differ more than their runs do not agree: runs at one point share a disturbance, or the law is
        // not quite right.
        let agree = within.1 > 0 && variance(between) < 3.0 * variance(within);
        let all = if agree { (between.0 + within.0, between.1 + within.1) } else { between };
        Some(Noise { deviation: variance(all).sqrt(), freedom: all.1 })
    }

    /// Returns the standard deviation of one run, in logarithms.
    pub fn deviation(&self) -> f64 {
        self.deviation
    }

    /// Returns how far two points must lie apart, in logarithms, for chance to explain it in one of ten cases.
    pub fn apart(&self, one: &Point, other: &Point) -> f64 {
        CHANCE * self.of_point(one).hypot(self.of_point(other))
    }

    /// Returns the degrees of freedom of the estimate.
    pub fn freedom(&self) -> usize {
        self.freedom
    }

    /// Returns the noise of a point's median.
    pub fn of_point(&self, point: &Point) -> f64 {
        self.deviation * of_median(point.seconds.len()).sqrt()
    }

    /// Calls `of` for each replicate, with random noise for each point.
    pub fn replicates<T>(&self, points: &[Point], mut of: impl FnMut(&[f64]) -> T) -> Vec<T> {
        let mut rng = Rng::with_seed(SEED);
        let draw = |_| {
            let squares: f64 = (0..self.freedom).map(|_| normal(&mut rng).powi(2)).sum();
            let wider = (self.freedom as f64 / squares.max(1e-9)).sqrt();
            let drawn: Vec<f64> = points.iter().map(|point| wider * self.of_point(point) * normal(&mut rng)).collect();
            of(&drawn)
        };
        (0..REPLICATES).map(draw).collect()
    }
}

/// Draws from the normal distribution with mean 0 and deviation 1 (Box and Muller).
pub fn normal(rng: &mut Rng) -> f64 {
    let (radius, angle) = ((-2.0 * (1.0 - rng.f64()).ln()).sqrt(), std::f64::consts::TAU * rng.f64());
    radius * angle.cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_shown_with_two_digits() {
        let shown = |value, from, to| Interval { value, from, to }.to_string();
        assert_eq!(shown(0.0441, 0.0312, 0.0586), "0.044 (0.031 to 0.059)");
        assert_eq!(shown(22.46, 19.8, f64::INFINITY), "22 (20 to any)");
        assert_eq!(shown(0.0, 0.0, 123.4), "0 (0 to 123)");
    }

    #[test]
    fn noise_of_repeats_is_their_deviation() {
        let mut rng = Rng::with_seed(1);
        let points: Vec<Point> = (0..200)
            .map(|at| Point { workers: at + 1, seconds: (0..3).map(|_| (0.05 * normal(&mut rng)).exp()).collect() })
            .collect();
        let noise = Noise::of_repeats(&points).expect("three of each");
        assert!((noise.deviation - 0.05).abs() < 0.004 && noise.freedom == 400, "{noise:?}");
        assert_eq!(Noise::of_repeats(&[Point { workers: 1, seconds: vec![1.0] }]), None);
    }

    #[test]
    fn the_median_of_three_varies_by_two_thirds() {
        let mut rng = Rng::with_seed(2);
        let medians: Vec<f64> = (0..4000)
            .map(|_| {
                let mut three = [0; 3].map(|_| normal(&mut rng));
                three.sort_by(f64::total_cmp);
                three[1].powi(2)
            })
            .collect();
        let variance = medians.iter().sum::<f64>() / medians.len() as f64;
        assert!((variance - of_median(3)).abs() < 0.03, "{variance} {}", of_median(3));
    }
}
