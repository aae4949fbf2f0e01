//! Analysis of the times alone: the law they follow, the best number of workers, and the uncertainty of both.

use crate::diagnose::fit::{Fit, Sketch};
use crate::diagnose::lack_of_fit::{self, CHANCE_MIN};
use crate::diagnose::law::Law;
use crate::diagnose::noise::{Interval, Noise};
use crate::diagnose::region::{BestRegion, regions};
use crate::diagnose::times::{Error, Point, Times};

/// The law that the times follow.
#[derive(Clone, Debug, PartialEq)]
pub enum FittedLaw {
    /// The time does not depend on the number of workers.
    Flat,
    /// There are fewer points than a law needs.
    TooFew,
    /// Every law misses the times by more than noise explains, or a curve with a bend describes them better.
    NoLaw,
    /// One law describes the times better than the others. Unless some number of workers ran twice, this is not
    /// tested: see [`Curve::noise`].
    Law(Law),
    /// These laws, perhaps with a bend among them, describe the times equally well; the curve alone cannot tell which
    /// one holds.
    Several(Vec<Law>),
}

/// The measured number of workers with the shortest time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Best {
    /// The number of workers.
    pub workers: u64,
    /// The interval that holds the true one in nine of ten cases. `None` if nothing ran twice and no law fits.
    pub interval: Option<(u64, u64)>,
}

/// The number of workers that has the shortest time according to the law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Predicted {
    /// At most twice the largest measured number.
    Workers(Interval),
    /// More than that, so the number itself would be a guess.
    Beyond {
        /// The time with twice the largest number that the law was fitted to, as a share of the time with that.
        doubled: f64,
    },
    /// The measurement contradicts it, so the law predicts nothing.
    Beaten {
        /// The number that would be best according to the law.
        best: f64,
        /// A measured number that is faster.
        by: u64,
    },
}

/// An analysis of times.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The times, by ascending number of workers.
    pub points: Vec<Point>,
    /// The fits of every law with few enough parameters, the best first.
    pub fits: Vec<Fit>,
    /// The law that the times follow.
    pub verdict: FittedLaw,
    /// The regions where more workers gain, saturate or lose.
    pub regions: Vec<BestRegion>,
    /// The best measured number of workers.
    pub best: Best,
    /// The best number of workers by the law; `None` without one law.
    pub predicted: Option<Predicted>,
    /// The deviation of equal runs: 0.05 is five percent. `None` if nothing ran twice; then no law was tested.
    pub noise: Option<f64>,
    /// The number of processors. Laws are fitted only up to it: more workers than processors take turns.
    pub processors: Option<u64>,
    /// The noise of the times, from equal runs and from a law that holds.
    spread: Option<Noise>,
}

/// The number of points that a choice between laws needs.
pub const POINTS_MIN: usize = 5;
/// The difference of Akaike's criterion below which fits are equally good.
const EQUALLY_GOOD: f64 = 2.0;
/// The deviation from the best law beyond which the times follow none.
const DEVIATION_MAX: f64 = 0.15;
/// The same where nothing ran twice, so that nobody knows how much of it is noise.
const UNTESTED_MAX: f64 = 0.08;
/// The difference below which times are equal.
const FLAT: f64 = 0.05;

impl Curve {
    /// Analyses times.
    ///
    /// # Errors
    ///
    /// [`Error::Empty`] if there are no times.
    pub fn of(times: &Times) -> Result<Curve, Error> {
        Curve::with(times, None)
    }

    /// Analyses times on a known number of processors.
    ///
    /// # Errors
    ///
    /// [`Error::Empty`] if there are no times.
    pub fn with(times: &Times, processors: Option<u64>) -> Result<Curve, Error> {
        let points: Vec<Point> = times.points().collect();
        let room = points.partition_point(|point| processors.is_none_or(|processors| point.workers <= processors));
        let best = points.iter().min_by(|a, b| a.median().total_cmp(&b.median())).ok_or(Error::Empty)?.workers;
        let sketches = sketches(&points[..room]);
        let repeats = Noise::of_repeats(&points);
        let verdict = verdict(&points, room, &sketches, repeats);
        let fits: Vec<Fit> = sketches.into_iter().filter_map(Sketch::with_intervals).collect();
        let noise = match (&verdict, fits.first()) {
            (FittedLaw::Law(_) | FittedLaw::Several(_), Some(fit)) => noise_of(&points[..room], fit),
            _ => repeats,
        };
        let predicted = match (&verdict, fits.first()) {
            (FittedLaw::Law(_), Some(fit)) => Some(predicted(&points, room, fit, noise)),
            _ => None,
        };
        Ok(Curve {
            best: Best { workers: best, interval: noise.map(|noise| best_of(&points, noise)) },
            regions: regions(&points, noise),
            predicted,
            noise: repeats.map(|noise| noise.deviation()),
            spread: noise,
            processors,
            verdict,
            fits,
            points,
        })
    }

    /// Returns the point with the fewest workers, the base of speed-up and efficiency.
    pub fn base(&self) -> &Point {
        &self.points[0]
    }

    /// Returns the speed-up of a point over the base.
    pub fn speed_up(&self, point: &Point) -> f64 {
        self.base().median() / point.median()
    }

    /// `E = (T1 / Tk) / k`: returns the gain per worker. If one worker was not measured, the base replaces it.
    pub fn efficiency(&self, point: &Point) -> f64 {
        self.speed_up(point) * self.base().workers as f64 / point.workers as f64
    }

    /// Returns how far medians lie from a law that holds, because of the noise of equal runs: 0.03 is three percent.
    pub(crate) fn explained_by_noise(&self) -> Option<f64> {
        let noise = self.spread.filter(|_| self.noise.is_some())?;
        let squares = self.points.iter().map(|point| lack_of_fit::variance(noise, point));
        Some((squares.sum::<f64>() / self.points.len() as f64).sqrt())
    }

    /// Returns true if the first point is faster than the second by more than noise explains.
    pub(crate) fn is_faster(&self, one: &Point, other: &Point) -> bool {
        (other.median() / one.median()).ln() > self.spread.map_or(0.0, |noise| noise.apart(one, other))
    }

    /// Returns true if there are more workers than processors.
    pub fn is_crowded(&self, workers: u64) -> bool {
        self.processors.is_some_and(|processors| workers > processors)
    }

    /// Returns the point with the shortest time.
    pub fn best_point(&self) -> &Point {
        self.points.iter().find(|point| point.workers == self.best.workers).expect("the best is one of the points")
    }
}

/// Fits every law that has few enough parameters. Returns the best first.
pub(crate) fn sketches(points: &[Point]) -> Vec<Sketch<'_>> {
    let mut sketches: Vec<Sketch> = Law::ALL.into_iter().filter_map(|law| Sketch::of(law, points)).collect();
    sketches.sort_by(|a, b| a.aicc.total_cmp(&b.aicc));
    sketches
}

fn noise_of(points: &[Point], fit: &Fit) -> Option<Noise> {
    let residual = |point: &Point| (point.median() / fit.fitted.seconds(point.workers as f64)).ln();
    let residuals: Vec<f64> = points.iter().map(residual).collect();
    Noise::of_fit(points, &residuals, fit.parameters.len() + 1)
}

pub(crate) fn verdict(points: &[Point], room: usize, fits: &[Sketch], repeats: Option<Noise>) -> FittedLaw {
    let medians = || points.iter().map(Point::median);
    let (least, most) = (medians().fold(f64::INFINITY, f64::min), medians().fold(0.0, f64::max));
    let noise_max = points.iter().filter_map(|point| Some(repeats?.of_point(point))).fold(0.0, f64::max);
    if points.len() > 1 && most / least < 1.0 + FLAT && noise_max < FLAT {
        return FittedLaw::Flat;
    }
    let Some(best) = fits.first().filter(|_| room >= POINTS_MIN) else { return FittedLaw::TooFew };
    let good = fits.iter().filter(|fit| fit.aicc - best.aicc < EQUALLY_GOOD && holds(fit)).map(|fit| fit.law);
    match good.collect::<Vec<Law>>()[..] {
        [] => FittedLaw::NoLaw,
        // It stands against the laws, and is none.
        [Law::Bend] => FittedLaw::NoLaw,
        [law] => FittedLaw::Law(law),
        ref several => FittedLaw::Several(several.to_vec()),
    }
}

/// Returns true if the times miss a law by no more than they may.
fn holds(fit: &Sketch) -> bool {
    match fit.chance() {
        Some(chance) => chance >= CHANCE_MIN && fit.deviation() <= DEVIATION_MAX,
        None => fit.deviation() <= UNTESTED_MAX,
    }
}

/// Returns the range of points that are best when the noise is redrawn.
fn best_of(points: &[Point], noise: Noise) -> (u64, u64) {
    let logs: Vec<f64> = points.iter().map(|point| point.median().ln()).collect();
    let best = |logs: &[f64]| {
        let least = (0..logs.len()).min_by(|a, b| logs[*a].total_cmp(&logs[*b])).expect("there are points");
        points[least].workers as f64
    };
    let again = noise.replicates(points, |drawn| {
        best(&logs.iter().zip(drawn).map(|(log, drawn)| log + drawn).collect::<Vec<f64>>())
    });
    let interval = Interval::of(best(&logs), again);
    (interval.from as u64, interval.to as u64)
}

/// Returns the best number of workers by a law that was fitted to the first `room` points, unless a measured point
/// beats it.
fn predicted(points: &[Point], room: usize, fit: &Fit, noise: Option<Noise>) -> Predicted {
    if let Some(by) = beaten(points, fit, noise) {
        return Predicted::Beaten { best: fit.best.value, by };
    }
    let measured = points[room - 1].workers as f64;
    if fit.best.value > 2.0 * measured {
        let doubled = fit.fitted.seconds(2.0 * measured) / fit.fitted.seconds(measured);
        return Predicted::Beyond { doubled };
    }
    Predicted::Workers(fit.best)
}

/// Returns the measured number of workers that is faster, beyond noise, than the law allows: faster than its shortest
/// time, or, away from where the law puts that, faster than the points on both sides of it.
fn beaten(points: &[Point], fit: &Fit, noise: Option<Noise>) -> Option<u64> {
    let best = points.iter().min_by(|a, b| a.median().total_cmp(&b.median()))?;
    let is_faster = |than: f64, apart: f64| (than / best.median()).ln() > apart;
    let chance = noise.map_or(0.0, |noise| noise.apart(best, best));
    if fit.best.value.is_finite() && is_faster(fit.fitted.seconds(fit.best.value), chance.max(lack_of_fit::SYSTEMATIC))
    {
        return Some(best.workers);
    }
    if fit.best.holds(best.workers as f64) {
        return None;
    }
    let after = points.partition_point(|point| (point.workers as f64) < fit.best.value);
    let sides = &points[after.saturating_sub(1)..(after + 1).min(points.len())];
    let is_side = sides.iter().any(|side| side.workers == best.workers);
    let beats_all =
        sides.iter().all(|side| is_faster(side.median(), noise.map_or(0.0, |noise| noise.apart(best, side))));
    (!is_side && beats_all).then_some(best.workers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::conclusion::{Circumstances, Conclusion};
    use crate::diagnose::region::Trend;

    fn curve(table: &[(u64, f64)]) -> Curve {
        let mut times = Times::default();
        table.iter().for_each(|(workers, seconds)| times.add(*workers, *seconds).expect("a time"));
        Curve::of(&times).expect("there are times")
    }

    fn fit(curve: &Curve, law: Law) -> &Fit {
        curve.fits.iter().find(|fit| fit.fitted.law == law).expect("fitted")
    }

    /// A table of thread bottlenecks (Chen 2020): palindromic tree, 10000F100000C.
    #[test]
    fn the_palindromic_tree_follows_the_universal_law_and_is_best_near_22() {
        let curve = curve(&[(1, 40.6), (2, 21.2), (4, 11.0), (8, 6.6), (16, 5.2), (32, 5.7), (64, 6.7)]);
        assert_eq!(curve.verdict, FittedLaw::Law(Law::Universal));
        let [contention, coherence] = curve.fits[0].parameters[..] else { panic!("two parameters") };
        assert!((contention.value - 0.044).abs() < 0.001 && contention.from > 0.02 && contention.to < 0.08);
        assert!((coherence.value - 0.0019).abs() < 0.0001 && coherence.from > 0.001 && coherence.to < 0.003);
        let Some(Predicted::Workers(best)) = curve.predicted else { panic!("{:?}", curve.predicted) };
        assert!((best.value - 22.5).abs() < 0.5 && best.from > 17.0 && best.to < 30.0, "{best:?}");
        assert_eq!(curve.best.workers, 16);
        let (from, to) = curve.best.interval.expect("a law gives the noise");
        assert!(from >= 8 && to <= 32, "{from} {to}");
        let trends: Vec<Trend> = curve.regions.iter().map(|region| region.trend).collect();
        assert_eq!(trends.first(), Some(&Trend::Gain));
        assert_eq!(trends.last(), Some(&Trend::Loss));
        // The values of thread bottlenecks (docs/bibliography.md): 100, 95, 92, 76, 47, 22, 9 %.
        let efficiency: Vec<i64> =
            curve.points.iter().map(|point| (curve.efficiency(point) * 100.0).round() as i64).collect();
        assert_eq!(efficiency, [100, 96, 92, 77, 49, 22, 9]);
    }

    /// A table of thread bottlenecks (Chen 2020): reading 50000F500000C.
    #[test]
    fn for_reading_neither_a_law_nor_a_floor_is_named() {
        let curve = curve(&[(1, 70.2), (2, 35.9), (5, 15.3), (10, 9.10), (15, 8.93), (20, 8.08)]);
        // The disks are busy with 8 readers, and the curve bends there.
        assert_eq!((&curve.verdict, curve.fits[0].fitted.law), (&FittedLaw::NoLaw, Law::Bend));
        assert!((7.0..10.0).contains(&(1.0 / curve.fits[0].fitted.shape[0])));
        let [law, floor] = [Law::Universal, Law::Floor].map(|law| fit(&curve, law));
        assert!((law.aicc - floor.aicc).abs() < 0.5, "{law:?} {floor:?}");
        assert_eq!(curve.predicted, None);
    }

    /// A table of thread bottlenecks (Chen 2020): brute force, 1000F1000C, on 48 hyper-threads. It scales until they
    /// are used up.
    #[test]
    fn brute_force_gains_to_the_last_worker() {
        let curve =
            curve(&[(1, 1.57), (2, 0.79), (4, 0.39), (8, 0.19), (16, 0.10), (32, 0.055), (48, 0.043), (64, 0.040)]);
        assert_eq!(curve.regions, [BestRegion { from: 1, to: 64, trend: Trend::Gain }]);
        assert_eq!(curve.best.workers, 64);
    }

    #[test]
    fn few_points_are_not_extrapolated() {
        let curve = curve(&[(1, 4.0), (2, 2.1), (4, 1.2)]);
        assert_eq!((curve.verdict, curve.predicted), (FittedLaw::TooFew, None));
        assert_eq!((curve.best.workers, curve.best.interval), (4, None));
    }

    /// Four workers on two processors take turns, which is not contention.
    #[test]
    fn more_workers_than_processors_are_shown_and_not_fitted() {
        let mut times = Times::default();
        let table = [(1, 8.0), (2, 4.02), (3, 2.66), (4, 2.01), (6, 1.34), (8, 1.0), (16, 1.0), (32, 1.1)];
        table.iter().for_each(|(workers, seconds)| times.add(*workers, *seconds).expect("a time"));
        let curve = Curve::with(&times, Some(8)).expect("there are times");
        let seconds = curve.fits[0].fitted.seconds(16.0);
        assert!((seconds - 0.5).abs() < 0.05, "{seconds}");
        assert_eq!((curve.points.len(), curve.is_crowded(8), curve.is_crowded(16)), (8, false, true));
        assert_eq!(Curve::with(&times, Some(4)).expect("there are times").verdict, FittedLaw::TooFew);
    }

    #[test]
    fn a_time_that_does_not_depend_on_workers_is_called_flat() {
        assert_eq!(curve(&[(1, 1.00), (2, 1.01), (4, 0.99), (8, 1.02), (16, 1.0)]).verdict, FittedLaw::Flat);
        assert_ne!(curve(&[(1, 1.0)]).verdict, FittedLaw::Flat);
        // Times that vary by half are not called flat.
        assert_ne!(curve(&[(1, 0.7), (1, 1.4), (2, 0.7), (2, 1.4)]).verdict, FittedLaw::Flat);
    }

    #[test]
    fn times_without_a_pattern_follow_no_law() {
        let curve = curve(&[(1, 1.0), (2, 9.0), (4, 0.2), (8, 5.0), (16, 0.3), (32, 7.0)]);
        assert_eq!((curve.verdict, curve.predicted), (FittedLaw::NoLaw, None));
    }

    #[test]
    fn a_law_that_goes_on_falling_predicts_no_number() {
        let amdahl = |workers: u64| (workers, 10.0 * (0.01 + 0.99 / workers as f64));
        let curve = curve(&[1, 2, 3, 4, 6, 8].map(amdahl));
        assert_eq!(curve.verdict, FittedLaw::Law(Law::Amdahl));
        let Some(Predicted::Beyond { doubled }) = curve.predicted else { panic!("{:?}", curve.predicted) };
        assert!((doubled - (0.01 + 0.99 / 16.0) / (0.01 + 0.99 / 8.0)).abs() < 0.002, "{doubled}");
    }

    /// Three runs with each number of workers, which differ by one percent.
    fn measured(workers: &[u64], time: impl Fn(f64) -> f64) -> Curve {
        let mut times = Times::default();
        for (at, count) in workers.iter().enumerate() {
            for factor in [0.99, 1.0, 1.01].map(|factor| factor + [0.002, -0.003, 0.001][at % 3]) {
                times.add(*count, time(*count as f64) * factor).expect("a time");
            }
        }
        Curve::of(&times).expect("there are times")
    }

    const NUMBERS: [u64; 9] = [1, 2, 4, 8, 16, 24, 32, 48, 64];

    /// A program whose time doubled on the second NUMA node "followed Amdahl's law", which missed it by 20 %.
    #[test]
    fn a_law_that_misses_the_times_by_more_than_their_noise_is_not_named() {
        let cliff = measured(&NUMBERS, |k| if k <= 32.0 { 32.0 / k } else { 64.0 / k });
        assert_eq!((&cliff.verdict, cliff.predicted), (&FittedLaw::NoLaw, None), "{cliff:?}");
        assert!(cliff.fits.iter().all(|fit| fit.chance.expect("three runs") < 0.1));
    }

    /// On 48 second threads of cores a program was "best with 39", though 48 and 64 were measured faster.
    #[test]
    fn no_number_is_predicted_that_a_measured_one_beats() {
        let threads = measured(&NUMBERS, |k| 10.0 / (k.min(24.0) + 0.25 * (k - 24.0).max(0.0)));
        assert!(!matches!(threads.predicted, Some(Predicted::Workers(_))), "{:?}", threads.predicted);
        assert_eq!(threads.best.workers, 64);
        // Beyond the processors no law is fitted, but what was measured there counts.
        let mut times = Times::default();
        let law = |k: f64| 40.0 * (1.0 + 0.044 * (k - 1.0) + 0.0019 * k * (k - 1.0)) / k;
        for (workers, seconds) in NUMBERS.map(|workers| (workers, law(workers as f64))).into_iter().chain([(128, 4.5)])
        {
            [0.99, 1.0, 1.01].iter().for_each(|factor| times.add(workers, seconds * factor).expect("a time"));
        }
        let curve = Curve::with(&times, Some(64)).expect("there are times");
        assert_eq!(curve.verdict, FittedLaw::Law(Law::Universal));
        assert!(matches!(curve.predicted, Some(Predicted::Beaten { by: 128, .. })), "{:?}", curve.predicted);
    }

    #[test]
    fn one_point_and_extreme_times_cause_no_panic() {
        for table in [
            &[(1, 1.0)][..],
            &[(1 << 20, 1e-300), (1, 9e12)],
            &[(7, 1.0), (8, 1.0)],
            &[(1, 1e-9), (2, 1e12), (3, 1e-9), (4, 1e12), (5, 1.0), (6, 1.0)],
            &[(1, 1.0), (2, 2.0), (4, 4.0), (8, 8.0), (16, 16.0), (1024, 1024.0)],
        ] {
            assert!(!Conclusion::of(&curve(table), &Circumstances::default()).sentence().is_empty());
        }
    }
}
