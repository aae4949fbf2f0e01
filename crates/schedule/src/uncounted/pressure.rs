//! Demands without counters: how much each program slows down a probe of the memory (beyond the paper).
//!
//! The machine does a little work on memory from time to time, and reports how long that took, and how many processors
//! each program used meanwhile. Each reading is one equation:
//!
//! ```text
//! time = undisturbed time * (1 + sum over programs of (processors used * demand)) + noise
//! ```
//!
//! The least sum of absolute errors over all readings gives the undisturbed time and the demands. It is found by least
//! squares in which a reading weighs less, the more it was off the time before (iteratively reweighted least squares),
//! so that a reading during which the processor was taken away hardly counts.
//!
//! A demand that the readings do not determine stays unknown, and so does one with fewer than eight readings. It may
//! come out below zero by noise, and then counts as zero.

use std::collections::{BTreeMap, VecDeque};

/// The number of readings that a demand needs.
const READINGS_MIN: usize = 8;
/// The number of readings that are remembered beside programs, so that the demands follow a machine that changes.
const READINGS_MAX: usize = 1024;
/// The number of those beside no program.
const UNDISTURBED_MAX: usize = 64;
/// The number of sources whose demands are computed: those with the most readings. The time grows with its third power.
const SOURCES_MAX: usize = 64;
/// The largest distance of a used share from a whole number of processors. A program that began or stopped during the
/// probe is further away.
const ROUNDING_MAX: f64 = 0.25;
/// How often readings are weighed anew.
const ROUNDS: usize = 12;
/// The error of a reading, as a share of a usual one, below which its weight does not grow any more.
const ERROR_MIN: f64 = 1e-3;
/// A pivot smaller than this share of its column is zero but for rounding.
const PIVOT_MIN: f64 = 1e-9;

/// One of the things whose demand is estimated: a phase of a program.
pub type Pressing = usize;

/// The factor from the mean distance of the median to the standard error, for least errors instead of least squares:
/// the square root of pi / 2.
const OF_LEAST_ERRORS: f64 = 1.2533;
/// The factor from the median distance to the standard deviation.
const OF_MEDIAN: f64 = 1.4826;
/// The largest likeness of neighbouring readings that is corrected for.
const LIKENESS_MAX: f64 = 0.9;

/// A demand, and how sure it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pressure {
    /// The slow-down that one processor causes: 0.5 if a reading takes half as long again.
    pub demand: f64,
    /// Its standard error.
    pub error: f64,
    /// The number of readings beside it.
    pub readings: u64,
}

impl Pressure {
    /// Returns the interval in which the demand lies in about 19 of 20 cases: two standard errors to either side.
    pub fn interval(&self) -> [f64; 2] {
        [self.demand - 2.0 * self.error, self.demand + 2.0 * self.error]
    }

    /// Returns the mean of both, weighted by their readings. Its error grows with their distance, because readings of
    /// one session err together.
    ///
    /// ```
    /// use gristmill_schedule::Pressure;
    ///
    /// let one = Pressure { demand: 0.2, error: 0.0, readings: 10 };
    /// let both = one.with(Pressure { demand: 0.4, ..one });
    /// assert!((both.demand - 0.3).abs() < 1e-9 && (both.error - 0.1).abs() < 1e-9);
    /// ```
    pub fn with(self, other: Pressure) -> Pressure {
        let readings = self.readings + other.readings;
        if readings == 0 {
            return self;
        }
        let [one, another] = [self, other].map(|of| of.readings as f64 / readings as f64);
        let within = (one * self.error).powi(2) + (another * other.error).powi(2);
        let between = one * another * (self.demand - other.demand).powi(2);
        Pressure {
            demand: one * self.demand + another * other.demand,
            error: (within + between).sqrt(),
            readings: readings.min(READINGS_MAX as u64),
        }
    }
}

/// The sources beside a reading, each with its number of processors, and the time that it took.
type PressedReading = (Vec<(Pressing, f64)>, f64);

/// Readings, and the demands that follow from them.
///
/// A demand is the slow-down that one processor causes that runs the source: 0.5 if a reading takes half as long again
/// beside it.
///
/// ```
/// use gristmill_schedule::Pressures;
///
/// let mut pressures = Pressures::default();
/// for _ in 0..8 {
///     pressures.add(&[], 10.0);
///     pressures.add(&[(0, 1.0)], 16.0);
///     pressures.add(&[(0, 1.0), (1, 1.0)], 17.0);
/// }
/// let demands = pressures.demands();
/// assert!((demands[&0] - 0.6).abs() < 1e-9 && (demands[&1] - 0.1).abs() < 1e-9);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Pressures {
    undisturbed: VecDeque<PressedReading>,
    beside: VecDeque<PressedReading>,
}

impl Pressures {
    /// Adds a reading: the processors that each source used meanwhile, and its time. Returns false if it is of no use.
    pub fn add(&mut self, used: &[(Pressing, f64)], took_us: f64) -> bool {
        let mut sums: BTreeMap<Pressing, f64> = BTreeMap::new();
        for (source, processors) in used {
            if (processors - processors.round()).abs() > ROUNDING_MAX {
                return false;
            }
            *sums.entry(*source).or_default() += processors.round();
        }
        sums.retain(|_, processors| *processors > 0.0);
        if !took_us.is_normal() {
            return false;
        }
        let (readings, most) = match sums.is_empty() {
            true => (&mut self.undisturbed, UNDISTURBED_MAX),
            false => (&mut self.beside, READINGS_MAX),
        };
        readings.push_back((sums.into_iter().collect(), took_us));
        if readings.len() > most {
            readings.pop_front();
        }
        true
    }

    /// Returns the demand of each source that the readings determine.
    pub fn demands(&self) -> BTreeMap<Pressing, f64> {
        self.estimates(false).into_iter().map(|(source, pressure)| (source, pressure.demand)).collect()
    }

    /// Returns the demand of each source that the readings determine, with its error.
    ///
    /// ```
    /// # use gristmill_schedule::Pressures;
    /// let mut pressures = Pressures::default();
    /// for turn in 0..16 {
    ///     let noise = f64::from(turn % 2);
    ///     pressures.add(&[], 10.0);
    ///     pressures.add(&[(0, 1.0)], 15.0 + noise);
    /// }
    /// let found = pressures.pressures()[&0];
    /// assert!(found.readings == 16 && found.error > 0.005 && found.interval()[0] < 0.55);
    /// ```
    pub fn pressures(&self) -> BTreeMap<Pressing, Pressure> {
        self.estimates(true)
    }

    fn estimates(&self, with_errors: bool) -> BTreeMap<Pressing, Pressure> {
        let rows = || self.undisturbed.iter().chain(&self.beside);
        let mut counts: BTreeMap<Pressing, usize> = BTreeMap::new();
        rows().flat_map(|row| &row.0).for_each(|(source, _)| *counts.entry(*source).or_default() += 1);
        let mut sources: Vec<Pressing> =
            counts.keys().copied().filter(|source| counts[source] >= READINGS_MIN).collect();
        sources.sort_by_key(|source| std::cmp::Reverse(counts[source]));
        sources.truncate(SOURCES_MAX);
        sources.sort_unstable();
        let place = |source: &Pressing| sources.binary_search(source).ok();
        // Each source has a column, and the undisturbed time the last.
        let row = |(used, took_us): &PressedReading| {
            let column = |(source, processors): &(Pressing, f64)| Some((place(source)?, *processors));
            let places: Option<Vec<(usize, f64)>> =
                used.iter().map(column).chain([Some((sources.len(), 1.0))]).collect();
            Some((places?, *took_us))
        };
        let rows: Vec<PressedReading> = rows().filter_map(row).collect();
        let found = least_errors(&rows, sources.len() + 1);
        let Some(undisturbed_us) = found.last().copied().flatten().filter(|time_us| *time_us > 0.0) else {
            return BTreeMap::new();
        };
        let errors_us = if with_errors { errors(&rows, &found) } else { vec![f64::INFINITY; found.len()] };
        let undisturbed_error_us = errors_us[sources.len()];
        let pressure = |((source, slower_us), error_us): ((&Pressing, Option<f64>), f64)| {
            let slower = slower_us? / undisturbed_us;
            let error = error_us.hypot(slower * undisturbed_error_us) / undisturbed_us;
            Some((*source, Pressure { demand: slower.max(0.0), error, readings: counts[source] as u64 }))
        };
        sources.iter().zip(found).zip(errors_us).filter_map(pressure).collect()
    }
}

/// Returns the standard error of each unknown: infinite for those that the rows leave open.
///
/// Neighbouring readings are alike where a foreign program comes and goes, so there are fewer independent ones than
/// readings.
fn errors(rows: &[PressedReading], found: &[Option<f64>]) -> Vec<f64> {
    let value = |places: &[(usize, f64)]| {
        places.iter().map(|(place, processors)| found[*place].map(|found| found * processors)).sum::<Option<f64>>()
    };
    let off: Vec<f64> = rows.iter().filter_map(|(places, took_us)| Some(took_us - value(places)?)).collect();
    let mut sizes: Vec<f64> = off.iter().map(|off| off.abs()).collect();
    sizes.sort_unstable_by(f64::total_cmp);
    // As many residuals are zero as there are unknowns, so the median of the others counts.
    let middle = (sizes.len() + found.len()) / 2;
    let Some(median) = sizes.get(middle.min(sizes.len().saturating_sub(1))) else {
        return vec![f64::INFINITY; found.len()];
    };
    // Interrupted readings would hide the likeness of the others.
    let most = 3.0 * median;
    let product = |a: f64, b: f64| a.clamp(-most, most) * b.clamp(-most, most);
    let square: f64 = off.iter().map(|off| product(*off, *off)).sum();
    let neighbours: f64 = off.windows(2).map(|pair| product(pair[0], pair[1])).sum();
    let likeness = if square > 0.0 { (neighbours / square).clamp(0.0, LIKENESS_MAX) } else { 0.0 };
    let deviation = OF_LEAST_ERRORS * OF_MEDIAN * median * ((1.0 + likeness) / (1.0 - likeness)).sqrt();
    inverse_diagonal(rows, found).into_iter().map(|share| deviation * share.sqrt()).collect()
}

/// Returns the diagonal of the inverse of the rows' normal matrix, without the unknowns that are open.
fn inverse_diagonal(rows: &[PressedReading], found: &[Option<f64>]) -> Vec<f64> {
    let unknowns = found.len();
    let mut normal = vec![vec![0.0; unknowns + 1]; unknowns];
    for (places, _) in rows {
        for (place, processors) in places {
            places.iter().for_each(|(other, with)| normal[*place][*other] += processors * with);
        }
    }
    let column = |place: usize| {
        let mut equations = normal.clone();
        equations[place][unknowns] = 1.0;
        solve(equations)[place].value
    };
    (0..unknowns).map(|place| if found[place].is_some() { column(place).max(0.0) } else { f64::INFINITY }).collect()
}

/// Returns the values of this many unknowns for which the errors of the rows have the least sum. `None` for each that
/// the rows leave open.
fn least_errors(rows: &[PressedReading], unknowns: usize) -> Vec<Option<f64>> {
    let mut weights = vec![1.0; rows.len()];
    let mut times: Vec<f64> = rows.iter().map(|row| row.1).collect();
    times.sort_unstable_by(f64::total_cmp);
    let error_min = times.get(times.len() / 2).map_or(1.0, |usual| usual * ERROR_MIN);
    let mut found = Vec::new();
    for _ in 0..ROUNDS {
        // The normal equations, with the right side as the last column.
        let mut equations = vec![vec![0.0; unknowns + 1]; unknowns];
        for ((places, took_us), weight) in rows.iter().zip(&weights) {
            for (place, processors) in places {
                let (line, weight) = (&mut equations[*place], weight * processors);
                places.iter().for_each(|(other, with)| line[*other] += weight * with);
                line[unknowns] += weight * took_us;
            }
        }
        found = solve(equations);
        for ((places, took_us), weight) in rows.iter().zip(&mut weights) {
            let value: f64 = places.iter().map(|(place, processors)| found[*place].value * processors).sum();
            *weight = error_min / (took_us - value).abs().max(error_min);
        }
    }
    found.into_iter().map(|unknown| unknown.is_determined.then_some(unknown.value)).collect()
}

/// An unknown of equations. One that they leave open has one of its values.
#[derive(Clone, Copy)]
struct Unknown {
    value: f64,
    is_determined: bool,
}

/// Solves normal equations by elimination (Gauss and Jordan). Their matrix is positive, so the diagonal has the pivots.
fn solve(mut equations: Vec<Vec<f64>>) -> Vec<Unknown> {
    let count = equations.len();
    let largest: Vec<f64> = (0..count).map(|column| equations[column][column]).collect();
    let mut open = Vec::new();
    for column in 0..count {
        let pivot = equations[column][column];
        if pivot <= PIVOT_MIN * largest[column] {
            open.push(column);
            continue;
        }
        equations[column].iter_mut().for_each(|factor| *factor /= pivot);
        let line = equations[column].clone();
        for (_, other) in equations.iter_mut().enumerate().filter(|(row, other)| *row != column && other[column] != 0.0)
        {
            let factor = other[column];
            other.iter_mut().zip(&line).for_each(|(value, of_pivot)| *value -= factor * of_pivot);
        }
    }
    let unknown = |row: usize| {
        let depends = open.iter().any(|column| equations[row][*column].abs() > PIVOT_MIN);
        let is_open = open.contains(&row);
        Unknown { value: if is_open { 0.0 } else { equations[row][count] }, is_determined: !is_open && !depends }
    };
    (0..count).map(unknown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pressures of a machine on which an undisturbed reading takes 10 us.
    fn undisturbed() -> Pressures {
        let mut pressures = Pressures::default();
        (0..16).for_each(|_| assert!(pressures.add(&[], 10.0)));
        pressures
    }

    /// Adds `count` readings beside a set of sources, one processor each, whose demands are `demands[source]`, with
    /// noise.
    fn read(
        pressures: &mut Pressures,
        set: &[Pressing],
        demands: &[f64],
        count: usize,
        noise: &mut dyn FnMut() -> f64,
    ) {
        let used: Vec<(Pressing, f64)> = set.iter().map(|source| (*source, 1.0)).collect();
        let sum: f64 = set.iter().map(|source| demands[*source]).sum();
        (0..count).for_each(|_| assert!(pressures.add(&used, 10.0 * (1.0 + sum + noise()))));
    }

    #[test]
    fn known_mixtures_give_the_demands_that_they_were_made_of() {
        let demands = [0.6, 0.0, 0.3, 0.05];
        let mut pressures = undisturbed();
        for set in [&[0, 1][..], &[1, 2], &[2, 3], &[0, 3], &[0, 1, 2]] {
            read(&mut pressures, set, &demands, 8, &mut || 0.0);
        }
        let found = pressures.demands();
        assert!(found.values().zip(demands).all(|(found, is)| (found - is).abs() < 1e-9), "{found:?}");
        assert_eq!(found.len(), 4);
    }

    #[test]
    fn noise_and_outliers_move_the_demands_little() {
        let (demands, mut random) = ([0.6, 0.02, 0.3], fastrand::Rng::with_seed(5));
        let mut pressures = undisturbed();
        for set in [&[0, 1][..], &[1, 2], &[0, 2]] {
            // Every tenth reading was interrupted and took several times as long.
            let mut noise = || if random.u8(..10) == 0 { 5.0 } else { random.f64() * 0.1 - 0.05 };
            read(&mut pressures, set, &demands, 63, &mut noise);
        }
        let found = pressures.demands();
        assert!(found.values().zip(demands).all(|(found, is)| (found - is).abs() < 0.05), "{found:?}");
    }

    #[test]
    fn a_few_readings_of_each_of_many_pairs_are_enough() {
        let demands = [0.6, 0.0, 0.3, 0.05, 0.4, 0.2, 0.0];
        let mut pressures = undisturbed();
        for one in 0..7 {
            (0..one).for_each(|other| read(&mut pressures, &[one, other], &demands, 3, &mut || 0.0));
        }
        let found = pressures.demands();
        assert!(found.values().zip(demands).all(|(found, is)| (found - is).abs() < 1e-9), "{found:?}");
        assert_eq!(found.len(), 7);
    }

    /// On 16 processors hardly any two readings are beside the same programs, so none was ever known while only
    /// readings of the same set were compared.
    #[test]
    fn forty_programs_on_sixteen_processors_become_known_although_no_set_repeats() {
        let mut random = fastrand::Rng::with_seed(3);
        let demands: Vec<f64> = (0..40).map(|_| if random.bool() { 0.0 } else { random.f64() * 0.3 }).collect();
        let mut pressures = undisturbed();
        for _ in 0..400 {
            let set = random.choose_multiple(0..40, 15);
            let mut noise = || if random.u8(..10) == 0 { 5.0 } else { random.f64() * 0.1 - 0.05 };
            read(&mut pressures, &set, &demands, 1, &mut noise);
        }
        let found = pressures.demands();
        assert!(found.values().zip(&demands).all(|(found, is)| (found - is).abs() < 0.05), "{found:?} {demands:?}");
        assert_eq!(found.len(), 40);
    }

    #[test]
    fn nothing_is_known_without_the_time_of_an_undisturbed_reading() {
        let mut pressures = Pressures::default();
        for set in [[0, 1], [1, 2], [0, 2]] {
            read(&mut pressures, &set, &[0.6, 0.0, 0.3], 7, &mut || 0.0);
        }
        assert!(pressures.demands().is_empty());
    }

    #[test]
    fn fewer_than_eight_readings_of_a_source_tell_nothing() {
        let mut pressures = undisturbed();
        read(&mut pressures, &[0], &[0.5], 7, &mut || 0.0);
        assert!(pressures.demands().is_empty());
        read(&mut pressures, &[0], &[0.5], 1, &mut || 0.0);
        assert_eq!(pressures.demands().len(), 1);
    }

    #[test]
    fn programs_that_always_ran_together_stay_unknown() {
        let mut pressures = undisturbed();
        read(&mut pressures, &[0, 1], &[0.6, 0.1, 0.2], 8, &mut || 0.0);
        read(&mut pressures, &[2], &[0.6, 0.1, 0.2], 8, &mut || 0.0);
        assert_eq!(pressures.demands().into_keys().collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn a_demand_below_zero_counts_as_zero() {
        let mut pressures = undisturbed();
        (0..8).for_each(|_| assert!(pressures.add(&[(0, 1.0), (1, 1.0)], 15.0)));
        (0..8).for_each(|_| assert!(pressures.add(&[(1, 1.0)], 16.0)));
        let found = pressures.demands();
        assert!(found[&0] == 0.0 && found[&1] > 0.5, "{found:?}");
    }

    #[test]
    fn a_reading_during_which_a_program_changed_is_of_no_use() {
        let mut pressures = undisturbed();
        assert!(!pressures.add(&[(0, 0.5)], 16.0));
        assert!(!pressures.add(&[(0, 1.0)], f64::NAN));
        assert!(pressures.add(&[(0, 0.9), (1, 0.1)], 16.0));
    }

    #[test]
    fn two_processors_of_one_source_press_twice() {
        let mut pressures = undisturbed();
        (0..8).for_each(|_| assert!(pressures.add(&[(0, 1.0), (0, 1.0)], 15.0)));
        (0..8).for_each(|_| assert!(pressures.add(&[(1, 2.0)], 15.0)));
        assert_eq!(pressures.demands(), BTreeMap::from([(0, 0.25), (1, 0.25)]));
    }

    #[test]
    fn the_median_follows_a_machine_that_changes() {
        let mut pressures = undisturbed();
        read(&mut pressures, &[0], &[0.5], READINGS_MAX, &mut || 0.0);
        read(&mut pressures, &[0], &[0.25], READINGS_MAX, &mut || 0.0);
        assert_eq!(pressures.demands(), BTreeMap::from([(0, 0.25)]));
    }

    /// Readings of a virtual machine with two processors, while ten other programs ran, beside two triads and two
    /// computations.
    const BUSY: &str = include_str!("recorded/busy_readings.csv");

    /// Returns the slow-downs of the triads and of the computations after the first readings.
    fn recorded(readings: usize) -> Vec<Pressure> {
        let mut pressures = Pressures::default();
        for row in BUSY.lines().skip(1).take(readings) {
            let values: Vec<f64> = row.split(',').map(|value| value.parse().expect("a number")).collect();
            let used: Vec<(Pressing, f64)> =
                (0..2).map(|source| (source, values[1 + source] + values[3 + source])).collect();
            pressures.add(&used, values[0]);
        }
        pressures.pressures().into_values().collect()
    }

    /// Under load, a program that does nothing but read and write memory was said to slow others down by 0 %, and one
    /// that only computes by 2 %.
    #[test]
    fn readings_of_a_busy_machine_never_order_programs_the_wrong_way_round() {
        for readings in (60..BUSY.lines().count()).step_by(20) {
            if let [triad, compute] = recorded(readings)[..] {
                let certain = compute.interval()[0] > triad.interval()[1];
                assert!(!certain, "after {readings}: {triad:?} {compute:?}");
            }
        }
    }

    #[test]
    fn the_true_demand_lies_in_most_intervals_and_the_error_shrinks_with_the_readings() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut errors = Vec::new();
        for count in [30, 300] {
            let (mut hits, mut error) = (0, 0.0);
            for _ in 0..100 {
                let mut pressures = undisturbed();
                for _ in 0..count {
                    let mut noise = || (0..4).map(|_| random.f64() - 0.5).sum::<f64>();
                    pressures.add(&[], 10.0 + noise());
                    pressures.add(&[(0, 1.0)], 13.0 + noise());
                }
                let found = pressures.pressures()[&0];
                let [least, most] = found.interval();
                hits += usize::from((least..=most).contains(&0.3));
                error += found.error / 100.0;
            }
            assert!(hits >= 85, "{count}: {hits} of 100");
            errors.push(error);
        }
        assert!(errors[1] < errors[0] * 0.9 && errors[0] < 0.05, "{errors:?}");
    }

    #[test]
    fn readings_that_err_together_for_a_while_count_for_less() {
        let error = |run: usize| {
            let mut pressures = undisturbed();
            for turn in 0..240 {
                let foreign = [0.0, 2.0][turn / run % 2];
                pressures.add(&[(0, 1.0)], 15.0 + foreign);
                pressures.add(&[(1, 1.0)], 10.0 + foreign);
            }
            pressures.pressures()[&0].error
        };
        assert!(error(40) > 1.5 * error(1), "{} {}", error(40), error(1));
    }
}
