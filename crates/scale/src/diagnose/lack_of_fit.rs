//! The test of lack of fit: do the times miss a law by more than equal runs differ?
//!
//! The classical F test (Draper and Smith, Applied Regression Analysis, 3rd edition, 1998, section 2.1), on
//! logarithms. The variance of equal runs is the pure error. The squared distances of the medians from the law, each
//! divided by the variance of such a median, have a mean near 1 if the law holds. That mean follows an F distribution,
//! approximately because these are medians. A law is rejected if chance alone would make the times miss it by as much
//! in fewer than one of ten cases.
//!
//! Runs that differ by a thousandth would reject every law, because no program follows one that closely: the clock
//! changes its frequency by a step, or one worker is placed worse than the others. So [`SYSTEMATIC`] is added to the
//! deviation of each median.

use crate::diagnose::noise::Noise;
use crate::diagnose::times::Point;

/// The deviation of a median from a law that equal runs do not show, in logarithms: one percent.
pub const SYSTEMATIC: f64 = 0.01;
/// The chance below which a law is rejected.
pub const CHANCE_MIN: f64 = 0.1;

/// Returns the chance that times which follow a law miss it by as much as these `residuals`. `parameters` counts those
/// of the law and the time of one worker. `None` if no number of workers ran twice, or no residual is free.
pub fn chance(points: &[Point], residuals: &[f64], parameters: usize) -> Option<f64> {
    let noise = Noise::of_repeats(points)?;
    let free = points.len().checked_sub(parameters).filter(|free| *free > 0)?;
    let squares: f64 =
        points.iter().zip(residuals).map(|(point, residual)| residual.powi(2) / variance(noise, point)).sum();
    Some(beyond(squares / free as f64, free as f64, noise.freedom() as f64))
}

/// Returns the variance of a median around a law that holds.
pub fn variance(noise: Noise, point: &Point) -> f64 {
    noise.of_point(point).powi(2) + SYSTEMATIC.powi(2)
}

/// Returns the chance that a value of the F distribution with these degrees of freedom exceeds `ratio`.
fn beyond(ratio: f64, above: f64, below: f64) -> f64 {
    incomplete_beta(below / (below + above * ratio), below / 2.0, above / 2.0)
}

/// Returns the regularised incomplete beta function, by its continued fraction (Abramowitz and Stegun 26.5.8, in the
/// order of Lentz).
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // The fraction converges fast on this side only.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let scale = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b);
    let front = (a * x.ln() + b * (1.0 - x).ln() + scale).exp() / a;
    let (mut above, mut below) = (1.0, 1.0 / (1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = below;
    for step in 1..200 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        for term in [even, odd] {
            below = 1.0 / (1.0 + term * below);
            above = 1.0 + term / above;
            fraction *= above * below;
        }
        if (above * below - 1.0).abs() < 1e-12 {
            break;
        }
    }
    front * fraction
}

/// Returns the logarithm of the gamma function of a multiple of one half.
fn ln_gamma(x: f64) -> f64 {
    let (mut sum, mut x) = (0.0, x);
    while x > 1.0 {
        x -= 1.0;
        sum += x.ln();
    }
    if x < 1.0 { sum + std::f64::consts::PI.sqrt().ln() } else { sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table of the F distribution, upper 5 % points (Pearson and Hartley, Biometrika Tables for Statisticians 1,
    /// 1966, table 18).
    #[test]
    fn the_distribution_agrees_with_the_printed_table() {
        for (above, below, ratio) in
            [(1, 1, 161.4), (4, 14, 3.11), (5, 10, 3.33), (3, 120, 2.68), (10, 2, 19.40), (1, 30, 4.17), (24, 60, 1.70)]
        {
            let chance = beyond(ratio, f64::from(above), f64::from(below));
            assert!((chance - 0.05).abs() < 0.0005, "{above} {below}: {chance}");
        }
        assert_eq!(beyond(0.0, 4.0, 14.0), 1.0);
        assert!(beyond(1e9, 4.0, 14.0) < 1e-9);
    }
}
