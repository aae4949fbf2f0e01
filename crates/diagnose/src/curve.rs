//! Analysis of the times alone: the law they follow, the best number of workers, and the uncertainty of both.

use crate::fit::Fit;
use crate::law::Law;
use crate::noise::{Interval, Noise};
use crate::region::{Region, regions};
use crate::times::{Error, Point, Times};

/// The law that the times follow.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The time does not depend on the number of workers.
    Flat,
    /// There are fewer points than a law needs.
    TooFew,
    /// No law comes near the times.
    NoLaw,
    /// One law describes the times better than the others.
    Law(Law),
    /// These laws describe the times equally well; the curve alone cannot tell which one holds.
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
    /// More than that, so a prediction would be a guess.
    Beyond,
}

/// An analysis of times.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The times, by ascending number of workers.
    pub points: Vec<Point>,
    /// The fits of every law with few enough parameters, the best first.
    pub fits: Vec<Fit>,
    /// The law that the times follow.
    pub verdict: Verdict,
    /// The regions where more workers gain, saturate or lose.
    pub regions: Vec<Region>,
    /// The best measured number of workers.
    pub best: Best,
    /// The best number of workers by the law; `None` without one law.
    pub predicted: Option<Predicted>,
    /// The number of processors. Laws are fitted only up to it: more workers than processors take turns.
    pub processors: Option<u64>,
}

/// The number of points that a choice between laws needs.
pub const POINTS_MIN: usize = 5;
/// The difference of Akaike's criterion below which fits are equally good.
const EQUALLY_GOOD: f64 = 2.0;
/// The deviation from the best law beyond which the times follow none.
const DEVIATION_MAX: f64 = 0.15;
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
        let mut fits: Vec<Fit> = Law::ALL.into_iter().filter_map(|law| Fit::of(law, &points[..room])).collect();
        fits.sort_by(|a, b| a.aicc.total_cmp(&b.aicc));
        let repeats = Noise::of_repeats(&points);
        let verdict = verdict(&points, room, &fits, repeats);
        let noise = match (&verdict, fits.first()) {
            (Verdict::Law(_) | Verdict::Several(_), Some(fit)) => noise_of(&points[..room], fit),
            _ => repeats,
        };
        let predicted = match (&verdict, fits.first()) {
            (Verdict::Law(_), Some(fit)) => Some(predicted(&points[..room], fit)),
            _ => None,
        };
        Ok(Curve {
            best: Best { workers: best, interval: noise.map(|noise| best_of(&points, noise)) },
            regions: regions(&points, noise),
            predicted,
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

    /// Returns true if there are more workers than processors.
    pub fn is_crowded(&self, workers: u64) -> bool {
        self.processors.is_some_and(|processors| workers > processors)
    }

    /// Returns the point with the shortest time.
    pub fn best_point(&self) -> &Point {
        self.points.iter().find(|point| point.workers == self.best.workers).expect("the best is one of the points")
    }
}

fn noise_of(points: &[Point], fit: &Fit) -> Option<Noise> {
    let residual = |point: &Point| (point.median() / fit.fitted.seconds(point.workers as f64)).ln();
    let residuals: Vec<f64> = points.iter().map(residual).collect();
    Noise::of_fit(points, &residuals, fit.parameters.len() + 1)
}

fn verdict(points: &[Point], room: usize, fits: &[Fit], repeats: Option<Noise>) -> Verdict {
    let medians = || points.iter().map(Point::median);
    let (least, most) = (medians().fold(f64::INFINITY, f64::min), medians().fold(0.0, f64::max));
    let noise_max = points.iter().filter_map(|point| Some(repeats?.of_point(point))).fold(0.0, f64::max);
    if points.len() > 1 && most / least < 1.0 + FLAT && noise_max < FLAT {
        return Verdict::Flat;
    }
    let Some(best) = fits.first().filter(|_| room >= POINTS_MIN) else { return Verdict::TooFew };
    if best.deviation > DEVIATION_MAX.max(3.0 * noise_max) {
        return Verdict::NoLaw;
    }
    let good = fits.iter().filter(|fit| fit.aicc - best.aicc < EQUALLY_GOOD).map(|fit| fit.fitted.law);
    match good.collect::<Vec<Law>>()[..] {
        [law] => Verdict::Law(law),
        ref several => Verdict::Several(several.to_vec()),
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

fn predicted(points: &[Point], fit: &Fit) -> Predicted {
    let measured = points[points.len() - 1].workers as f64;
    if fit.best.value > 2.0 * measured { Predicted::Beyond } else { Predicted::Workers(fit.best) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::Trend;

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
        assert_eq!(curve.verdict, Verdict::Law(Law::Universal));
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
        // The paper's own values: 100, 95, 92, 76, 47, 22, 9 %.
        let efficiency: Vec<i64> =
            curve.points.iter().map(|point| (curve.efficiency(point) * 100.0).round() as i64).collect();
        assert_eq!(efficiency, [100, 96, 92, 77, 49, 22, 9]);
    }

    /// A table of thread bottlenecks (Chen 2020): reading 50000F500000C.
    #[test]
    fn for_reading_the_curve_alone_cannot_tell_a_law_from_a_floor() {
        let curve = curve(&[(1, 70.2), (2, 35.9), (5, 15.3), (10, 9.10), (15, 8.93), (20, 8.08)]);
        let Verdict::Several(laws) = &curve.verdict else { panic!("{:?}", curve.verdict) };
        assert!(laws.contains(&Law::Universal) && laws.contains(&Law::Floor), "{laws:?}");
        let [law, floor] = [Law::Universal, Law::Floor].map(|law| fit(&curve, law));
        assert!((law.aicc - floor.aicc).abs() < 0.5, "{law:?} {floor:?}");
        assert_eq!(curve.predicted, None);
    }

    /// A table of thread bottlenecks (Chen 2020): brute force, 1000F1000C, on 48 hyper-threads. It scales until they are used up.
    #[test]
    fn brute_force_gains_to_the_last_worker() {
        let curve =
            curve(&[(1, 1.57), (2, 0.79), (4, 0.39), (8, 0.19), (16, 0.10), (32, 0.055), (48, 0.043), (64, 0.040)]);
        assert_eq!(curve.regions, [Region { from: 1, to: 64, trend: Trend::Gain }]);
        assert_eq!(curve.best.workers, 64);
    }

    #[test]
    fn few_points_are_not_extrapolated() {
        let curve = curve(&[(1, 4.0), (2, 2.1), (4, 1.2)]);
        assert_eq!((curve.verdict, curve.predicted), (Verdict::TooFew, None));
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
        assert_eq!(Curve::with(&times, Some(4)).expect("there are times").verdict, Verdict::TooFew);
    }

    #[test]
    fn a_time_that_does_not_depend_on_workers_is_called_flat() {
        assert_eq!(curve(&[(1, 1.00), (2, 1.01), (4, 0.99), (8, 1.02), (16, 1.0)]).verdict, Verdict::Flat);
        assert_ne!(curve(&[(1, 1.0)]).verdict, Verdict::Flat);
        // Times that vary by half are not called flat.
        assert_ne!(curve(&[(1, 0.7), (1, 1.4), (2, 0.7), (2, 1.4)]).verdict, Verdict::Flat);
    }

    #[test]
    fn times_without_a_pattern_follow_no_law() {
        let curve = curve(&[(1, 1.0), (2, 9.0), (4, 0.2), (8, 5.0), (16, 0.3), (32, 7.0)]);
        assert_eq!((curve.verdict, curve.predicted), (Verdict::NoLaw, None));
    }

    #[test]
    fn a_law_that_goes_on_falling_predicts_no_number() {
        let amdahl = |workers: u64| (workers, 10.0 * (0.01 + 0.99 / workers as f64));
        let curve = curve(&[1, 2, 3, 4, 6, 8].map(amdahl));
        assert_eq!(curve.verdict, Verdict::Law(Law::Amdahl));
        assert_eq!(curve.predicted, Some(Predicted::Beyond));
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
            assert!(!curve(table).sentence().is_empty());
        }
    }
}
