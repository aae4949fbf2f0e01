//! Fits the parameters of a law to times.
//!
//! Distances are measured in logarithms: ten percent count the same at a short time as at a long one.

use crate::diagnose::lack_of_fit;
use crate::diagnose::law::{Law, Shape};
use crate::diagnose::noise::{Interval, Noise};
use crate::diagnose::simplex::{Position, bottoms, nearby};
use crate::diagnose::times::Point;

/// A law with its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fitted {
    /// The law.
    pub law: Law,
    /// The time with one worker, in seconds.
    pub first_seconds: f64,
    /// The parameters; unused ones are 0.
    pub shape: [f64; 2],
}

/// A law fitted to times, with its uncertainty.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The law and its least-squares parameters.
    pub fitted: Fitted,
    /// Each parameter with its interval, in the order of [`Law::meanings`].
    pub parameters: Vec<Interval>,
    /// The number of workers with the shortest time according to this law.
    pub best: Interval,
    /// The deviation of the times from the law: 0.05 is five percent.
    pub deviation: f64,
    /// The chance that times which follow this law miss it by as much, by the test of lack of fit. `None` if nothing
    /// ran twice.
    pub chance: Option<f64>,
    /// Akaike's criterion for small samples: less is better, and differences below 2 are insignificant.
    pub aicc: f64,
    /// The fits of times that differ from these only by noise.
    again: Vec<Fitted>,
}

/// The deviation below which a fit counts as exact, because times have few digits.
const DEVIATION_MIN: f64 = 1e-4;

impl Fitted {
    /// Returns the time according to the law, in seconds.
    pub fn seconds(&self, workers: f64) -> f64 {
        self.first_seconds * self.law.shape(workers, self.shape)
    }
}

/// A search for the parameters of a law.
struct Search<'s> {
    law: Law,
    workers: &'s [f64],
    /// The places to start from.
    starts: Vec<Position>,
}

impl<'s> Search<'s> {
    /// Returns the best fit, its sum of squares, and a search for times that differ from these only by noise.
    fn best(law: Law, workers: &'s [f64], logs: &[f64]) -> (Fitted, f64, Search<'s>) {
        let mut search = Search { law, workers, starts: Vec::new() };
        let even: Vec<f64> = (0..25).map(|at| f64::from(at) / 24.0).collect();
        let first = match law {
            // Laws with a kink are smooth while it stays between two numbers of workers.
            Law::Floor | Law::Bend => {
                let between = workers.windows(2).rev().map(|pair| place_of(1.0 / (pair[0] * pair[1]).sqrt()));
                [0.0].into_iter().chain(between).chain([1.0]).collect()
            }
            Law::Amdahl | Law::Universal => even.clone(),
        };
        let second = if law.meanings().len() == 1 { &[0.0][..] } else { &even };
        let found = bottoms(&first, second, |place| search.squares(logs, place));
        search.starts = found.iter().map(|(place, _)| *place).collect();
        let (place, squares) = found[0];
        (search.fitted(logs, place), squares, search)
    }

    /// Fits times that differ from the first ones by noise.
    fn again(&self, logs: &[f64]) -> Fitted {
        let parameters = self.law.meanings().len();
        self.fitted(logs, nearby(parameters, &self.starts, |place| self.squares(logs, place)))
    }

    /// Returns the logarithm of the time with one worker, and the remaining sum of squares. For given parameters that
    /// logarithm is a mean and needs no search.
    fn first(&self, logs: &[f64], shape: Shape) -> (f64, f64) {
        let mut sums = (0.0, 0.0);
        for (workers, log) in self.workers.iter().zip(logs) {
            let log = log - self.law.shape(*workers, shape).ln();
            sums = (sums.0 + log, sums.1 + log * log);
        }
        let mean = sums.0 / logs.len() as f64;
        (mean, (sums.1 - mean * sums.0).max(0.0))
    }

    fn squares(&self, logs: &[f64], place: Position) -> f64 {
        self.first(logs, stretched(place)).1
    }

    fn fitted(&self, logs: &[f64], place: Position) -> Fitted {
        let shape = stretched(place);
        Fitted { law: self.law, first_seconds: self.first(logs, shape).0.exp(), shape }
    }
}

/// Maps a place in the search square to parameters. Small parameters matter most, so they get most of the square.
fn stretched(place: Position) -> Shape {
    place.map(|side| side.powi(4))
}

/// The inverse of `stretched` for one parameter.
fn place_of(parameter: f64) -> f64 {
    parameter.sqrt().sqrt()
}

/// A law fitted to times, before its intervals are known.
pub(crate) struct Sketch<'p> {
    pub(crate) law: Law,
    points: &'p [Point],
    workers: Vec<f64>,
    logs: Vec<f64>,
    fitted: Fitted,
    starts: Vec<Position>,
    squares: f64,
    /// Akaike's criterion for small samples.
    pub(crate) aicc: f64,
    /// The parameters of the law, and the time with one worker.
    parameters: usize,
}

impl<'p> Sketch<'p> {
    /// Fits a law. Returns `None` if the law has too many parameters for these points.
    pub(crate) fn of(law: Law, points: &'p [Point]) -> Option<Sketch<'p>> {
        // The time with one worker is a parameter, too.
        let (count, parameters) = (points.len(), law.meanings().len() + 1);
        let spare = count.checked_sub(parameters + 1).filter(|spare| *spare > 0)?;
        let workers: Vec<f64> = points.iter().map(|point| point.workers as f64).collect();
        let logs: Vec<f64> = points.iter().map(|point| point.median().ln()).collect();
        let (fitted, squares, Search { starts, .. }) = Search::best(law, &workers, &logs);
        let mean = (squares / count as f64).max(DEVIATION_MIN.powi(2));
        let aicc = count as f64 * mean.ln()
            + (2 * parameters) as f64
            + (2 * parameters * (parameters + 1)) as f64 / spare as f64;
        Some(Sketch { law, points, workers, logs, fitted, starts, squares, aicc, parameters })
    }

    /// Returns the deviation of the times from the law: 0.05 is five percent.
    pub(crate) fn deviation(&self) -> f64 {
        (self.squares / (self.logs.len() - self.parameters) as f64).sqrt()
    }

    /// Returns the chance that times which follow this law miss it by as much; `None` if nothing ran twice.
    pub(crate) fn chance(&self) -> Option<f64> {
        lack_of_fit::chance(self.points, &self.residuals(), self.parameters)
    }

    /// Returns the logarithms of the times according to the law.
    fn exact(&self) -> Vec<f64> {
        self.workers.iter().map(|workers| self.fitted.seconds(*workers).ln()).collect()
    }

    fn residuals(&self) -> Vec<f64> {
        self.logs.iter().zip(self.exact()).map(|(log, exact)| log - exact).collect()
    }

    /// Adds the intervals: those of fits to times that follow the law exactly, except for noise.
    pub(crate) fn with_intervals(self) -> Option<Fit> {
        let (law, exact) = (self.law, self.exact());
        let noise = Noise::of_fit(self.points, &self.residuals(), self.parameters)?;
        let search = Search { law, workers: &self.workers, starts: self.starts.clone() };
        let again = noise.replicates(self.points, |drawn| {
            let logs: Vec<f64> = exact.iter().zip(drawn).map(|(exact, drawn)| exact + drawn).collect();
            search.again(&logs)
        });
        let interval = |of: &dyn Fn(&Fitted) -> f64| Interval::of(of(&self.fitted), again.iter().map(of).collect());
        Some(Fit {
            parameters: (0..law.meanings().len()).map(|at| interval(&|fitted| fitted.shape[at])).collect(),
            best: interval(&|fitted| law.best(fitted.shape)),
            deviation: self.deviation(),
            chance: self.chance(),
            aicc: self.aicc,
            fitted: self.fitted,
            again,
        })
    }
}

impl Fit {
    /// Fits a law. Returns `None` if the law has too many parameters for these points.
    pub fn of(law: Law, points: &[Point]) -> Option<Fit> {
        Sketch::of(law, points)?.with_intervals()
    }

    /// Returns the time that the law gives for a number of workers, in seconds, with its interval.
    pub fn seconds(&self, workers: f64) -> Interval {
        let all = self.again.iter().map(|fitted| fitted.seconds(workers)).collect();
        Interval::of(self.fitted.seconds(workers), all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::noise::normal;
    use proptest::prelude::*;

    fn points(fitted: &Fitted, workers: &[u64], runs: usize, noise: f64, seed: u64) -> Vec<Point> {
        let mut rng = fastrand::Rng::with_seed(seed);
        let point = |workers: &u64| {
            let mut seconds: Vec<f64> =
                (0..runs).map(|_| fitted.seconds(*workers as f64) * (noise * normal(&mut rng)).exp()).collect();
            seconds.sort_by(f64::total_cmp);
            Point { workers: *workers, seconds }
        };
        workers.iter().map(point).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_parameters_of_exact_times_are_found(
            law in prop_oneof![Just(Law::Amdahl), Just(Law::Universal), Just(Law::Floor)],
            first in 0.02..0.5_f64, second in 0.0005..0.02_f64, seconds in 1e-3..1e3_f64,
        ) {
            let shape = [first, if law == Law::Amdahl { 0.0 } else { second }];
            let truth = Fitted { law, first_seconds: seconds, shape };
            let workers = [1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0, 32.0, 64.0];
            let logs = workers.map(|workers| truth.seconds(workers).ln());
            let (found, ..) = Search::best(law, &workers, &logs);
            for workers in workers {
                let far = (found.seconds(workers) / truth.seconds(workers)).ln();
                prop_assert!(far.abs() < 0.02, "{found:?} {truth:?}: {far} with {workers}");
            }
            // A floor that is hardly reached cannot be located.
            for (found, truth) in found.shape.iter().zip(shape).filter(|_| law != Law::Floor) {
                prop_assert!((found - truth).abs() < 0.01 * truth + 2e-4, "{found} {truth}");
            }
        }
    }

    /// A 90 % interval holds the truth in 90 % of cases: of 120 draws, 95 to 118 lie within four deviations.
    #[test]
    fn intervals_hold_the_truth_as_often_as_they_claim() {
        const DRAWS: u64 = 120;
        for (law, shape) in [(Law::Universal, [0.044, 0.0019]), (Law::Amdahl, [0.1, 0.0]), (Law::Floor, [0.15, 0.004])]
        {
            for (runs, noise) in [(1, 0.05), (3, 0.03)] {
                let truth = Fitted { law, first_seconds: 40.0, shape };
                let mut held = [0; 3];
                for seed in 0..DRAWS {
                    let points = points(&truth, &[1, 2, 4, 8, 16, 32, 64], runs, noise, seed);
                    let fit = Fit::of(law, &points).expect("seven points are enough");
                    for (at, interval) in fit.parameters.iter().enumerate() {
                        held[at] += u64::from(interval.holds(shape[at]));
                    }
                    held[2] += u64::from(fit.best.holds(law.best(shape)));
                }
                let asked = if law == Law::Amdahl { &held[..1] } else { &held[..] };
                println!("{law} {runs} {noise}: {held:?}");
                for held in asked {
                    assert!((95..=118).contains(held), "{law}, {runs} runs: {held} of {DRAWS}");
                }
            }
        }
    }

    #[test]
    fn the_interval_of_a_time_is_narrow_where_times_were_measured() {
        let truth = Fitted { law: Law::Universal, first_seconds: 40.0, shape: [0.044, 0.0019] };
        let fit = Fit::of(truth.law, &points(&truth, &[1, 2, 4, 8, 16, 32, 64], 3, 0.03, 1)).expect("enough points");
        let width = |workers: f64| {
            let interval = fit.seconds(workers);
            assert!(interval.from <= interval.value && interval.value <= interval.to, "{interval:?}");
            interval.to / interval.from
        };
        assert!(fit.seconds(10.0).holds(truth.seconds(10.0)));
        assert!(width(16.0) < 1.1 && width(16.0) < width(1024.0));
    }

    #[test]
    fn too_few_points_are_not_fitted() {
        let truth = Fitted { law: Law::Universal, first_seconds: 1.0, shape: [0.1, 0.01] };
        assert!(Fit::of(Law::Universal, &points(&truth, &[1, 2, 4, 8], 9, 0.01, 1)).is_none());
        assert!(Fit::of(Law::Amdahl, &points(&truth, &[1, 2, 4], 9, 0.01, 1)).is_none());
        assert!(Fit::of(Law::Amdahl, &[]).is_none());
    }
}
