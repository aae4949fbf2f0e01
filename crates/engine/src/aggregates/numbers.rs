//! Count, mean and variance of numbers, and the extremes.

use std::cmp::Ordering;

use gristmill_derive::Datum;

use crate::program::aggregate::Aggregate;

/// Count, sum, mean, variance, least and greatest of numbers.
///
/// A sum has twice the digits of an `f64` (two of them; Knuth's TwoSum), so that a mean is right to its last digit or
/// nearly, however far from 0 the numbers are, and the sum of whole numbers is exact as far as an `f64` holds it. The
/// squares of the differences from that mean are updated and merged as in Chan, Golub and LeVeque, "Updating formulae
/// and a pairwise algorithm for computing sample variances" (1979), and rounded at each step. If one of the numbers is
/// not a number (NaN), so are all results but the count; an infinite one makes the variance NaN. A sum beyond the range
/// of an `f64` (1.8e308) is infinite, and so is the mean then; so is the variance of numbers that lie more than about
/// 1e154 apart.
///
/// ```
/// use gristmill::Aggregate;
/// use gristmill::aggregates::Numbers;
///
/// let mut depths = Numbers::default();
/// assert_eq!((depths.count(), depths.mean(), depths.least()), (0, None, None));
/// [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0].into_iter().for_each(|depth| Numbers::add(&mut depths, depth));
/// assert_eq!((depths.count(), depths.sum(), depths.mean()), (8, 40.0, Some(5.0)));
/// assert_eq!((depths.least(), depths.greatest()), (Some(2.0), Some(9.0)));
/// assert!((depths.variance().expect("there are numbers") - 4.0).abs() < 1e-12);
/// assert!((depths.sample_variance().expect("there are two") - 32.0 / 7.0).abs() < 1e-12);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Datum)]
pub struct Numbers {
    count: u64,
    sum: Twofold,
    /// The sum of the squares of all differences from the mean.
    squares: f64,
    least: f64,
    greatest: f64,
}

impl Aggregate for Numbers {
    type Item = f64;

    fn add(numbers: &mut Numbers, number: f64) {
        let squares = if number.is_finite() { 0.0 } else { f64::NAN };
        Numbers::merge(
            numbers,
            Numbers { count: 1, sum: Twofold(number, 0.0), squares, least: number, greatest: number },
        );
    }

    fn merge(numbers: &mut Numbers, other: Numbers) {
        if other.count == 0 {
            return;
        }
        if numbers.count == 0 {
            *numbers = other;
            return;
        }
        let (count, others) = (numbers.count as f64, other.count as f64);
        let (mean, others_mean) = (numbers.sum.divided(count), other.sum.divided(others));
        let apart = (others_mean.0 - mean.0) + (others_mean.1 - mean.1);
        numbers.squares += other.squares + apart * apart * (count * (others / (count + others)));
        numbers.count += other.count;
        numbers.sum = numbers.sum.plus(other.sum);
        numbers.least = extreme(Ordering::Less, numbers.least, other.least);
        numbers.greatest = extreme(Ordering::Greater, numbers.greatest, other.greatest);
    }
}

/// The sum of two numbers, of which the second is at most half a unit in the last place of the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Datum)]
struct Twofold(f64, f64);

impl Twofold {
    /// Returns the sum and its rounding error.
    fn sum(a: f64, b: f64) -> Twofold {
        let sum = a + b;
        let of_b = sum - a;
        Twofold(sum, (a - (sum - of_b)) + (b - of_b))
    }

    fn plus(self, other: Twofold) -> Twofold {
        let Twofold(high, low) = Twofold::sum(self.0, other.0);
        // An infinite or undefined sum has no error.
        if high.is_finite() { Twofold::sum(high, low + (self.1 + other.1)) } else { Twofold(high, 0.0) }
    }

    fn divided(self, by: f64) -> Twofold {
        let high = self.0 / by;
        if high.is_finite() { Twofold(high, (high.mul_add(-by, self.0) + self.1) / by) } else { Twofold(high, 0.0) }
    }
}

/// Returns the number that is less, or greater, than the other, or NaN if one is NaN. `f64::min` and `f64::max` would
/// return the other one then, and either of 0.0 and -0.0.
fn extreme(wanted: Ordering, a: f64, b: f64) -> f64 {
    if a.is_nan() || (!b.is_nan() && a.total_cmp(&b) == wanted) { a } else { b }
}

impl Numbers {
    /// Returns how many numbers there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the sum; 0 if there were no numbers.
    pub fn sum(&self) -> f64 {
        self.sum.0
    }

    /// Returns the arithmetic mean, if there were numbers.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| {
            let Twofold(high, low) = self.sum.divided(self.count as f64);
            high + low
        })
    }

    /// Returns the variance of these numbers (the mean square of their differences from the mean), if there were any.
    pub fn variance(&self) -> Option<f64> {
        (self.count > 0).then(|| self.squares / self.count as f64)
    }

    /// Returns the variance of the population from which these numbers are a sample (Bessel's correction), if there
    /// were at least two. Its square root is the sample's standard deviation.
    pub fn sample_variance(&self) -> Option<f64> {
        (self.count > 1).then(|| self.squares / (self.count - 1) as f64)
    }

    /// Returns the least number, if there were any.
    pub fn least(&self) -> Option<f64> {
        (self.count > 0).then_some(self.least)
    }

    /// Returns the greatest number, if there were any.
    pub fn greatest(&self) -> Option<f64> {
        (self.count > 0).then_some(self.greatest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn numbers(of: &[f64]) -> Numbers {
        of.iter().fold(Numbers::default(), |mut numbers, number| {
            Numbers::add(&mut numbers, *number);
            numbers
        })
    }

    proptest! {
        #[test]
        fn merged_parts_have_the_variance_of_two_passes(
            all in prop::collection::vec(-1e3..1e3, 1..200), cut in 0usize..200, shift in prop::sample::select(vec![0.0, 1e6])
        ) {
            let all: Vec<f64> = all.iter().map(|number| number + shift).collect();
            let (a, b) = all.split_at(cut.min(all.len()));
            let found = Numbers::merged(numbers(a), numbers(b));
            let count = all.len() as f64;
            let mean = all.iter().sum::<f64>() / count;
            let variance = all.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / count;
            prop_assert_eq!(found.count(), all.len() as u64);
            prop_assert!((found.mean().unwrap() - mean).abs() <= 1e-12 * (1.0 + mean.abs()));
            prop_assert!((found.variance().unwrap() - variance).abs() <= 1e-9 * (1.0 + variance) + shift * 1e-8, "{found:?}, not {variance}");
            prop_assert_eq!(found.least(), all.iter().copied().reduce(f64::min));
            prop_assert_eq!(found.greatest(), all.iter().copied().reduce(f64::max));
        }
    }

    proptest! {
        /// The standard deviation of a thousand times 10^15 + 1 was 0.8, and the mean was beyond the greatest number.
        #[test]
        fn numbers_far_from_0_have_the_exact_mean_and_a_right_variance(
            small in prop::collection::vec(0i64..1000, 1..400),
            times in prop::sample::select(vec![1usize, 50]),
            far in prop::sample::select(vec![0i64, 1_000_000_000, 1_000_000_000_000_000, 1_700_000_000_000_000, -(1 << 52)]),
            cuts in prop::collection::vec(0usize..20_000, 0..4),
        ) {
            let all: Vec<i64> = small.iter().cycle().take(small.len() * times).map(|number| far + number).collect();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(all.len())).chain([0, all.len()]).collect();
            cuts.sort_unstable();
            let parts = cuts.windows(2).map(|ends| {
                numbers(&all[ends[0]..ends[1]].iter().map(|number| *number as f64).collect::<Vec<_>>())
            });
            let found = parts.reduce(Numbers::merged).expect("there is a part");
            // Whole numbers: sums of differences and of their squares are exact.
            let count = all.len() as i128;
            let (sum, squares) = all.iter().fold((0, 0), |(sum, squares), number| {
                let difference = i128::from(number - far);
                (sum + difference, squares + difference * difference)
            });
            let exact = (count * squares - sum * sum) as f64 / (count * count) as f64;
            let variance = found.variance().expect("there are numbers");
            prop_assert!((variance - exact).abs() <= 1e-12 * exact, "{variance}, not {exact}");
            let mean = (i128::from(far) * count + sum) as f64 / count as f64;
            let found_mean = found.mean().expect("there are numbers");
            prop_assert!((found_mean - mean).abs() <= 2.0 * f64::EPSILON * mean.abs(), "{found_mean}, not {mean}");
            prop_assert_eq!(found.sum(), (i128::from(far) * count + sum) as f64);
        }

        #[test]
        fn equal_numbers_have_themselves_as_mean_and_no_variance(number in -1e300..1e300, count in 1usize..3000, cut in 0usize..3000) {
            let all = vec![number / count as f64; count];
            let (a, b) = all.split_at(cut.min(count));
            let found = Numbers::merged(numbers(a), numbers(b));
            prop_assert_eq!((found.mean(), found.variance()), (Some(all[0]), Some(0.0)));
        }
    }

    #[test]
    fn what_is_no_number_shows_in_all_results_but_the_count() {
        for all in [&[f64::NAN, 1.0, 2.0][..], &[1.0, f64::NAN, 2.0], &[1.0, 2.0, f64::NAN], &[f64::NAN]] {
            let found = numbers(all);
            assert_eq!(found.count(), all.len() as u64);
            let results = [found.mean(), found.variance(), found.least(), found.greatest()];
            assert!(results.iter().all(|result| result.is_some_and(f64::is_nan)), "{found:?}");
        }
        assert!(numbers(&[f64::INFINITY]).variance().is_some_and(f64::is_nan));
    }

    #[test]
    fn of_nothing_and_of_one_number() {
        let none = Numbers::merged(Numbers::default(), Numbers::default());
        assert_eq!((none.count(), none.variance(), none.greatest()), (0, None, None));
        let one = Numbers::merged(none, numbers(&[-3.5]));
        assert_eq!((one.variance(), one.sample_variance(), one.least()), (Some(0.0), None, Some(-3.5)));
    }
}
