//! Demands without counters: how much each program slows down a probe of the memory (beyond the paper).
//!
//! The machine reads a little memory from time to time, and reports how long that took, and how many processors each program used meanwhile.
//! From these readings:
//!
//! 1. readings with the same programs on the same number of processors form a set; its median counts, from eight readings on;
//! 2. the least median is that of an undisturbed machine; the others exceed it by a share, the slow-down;
//! 3. `slow-down = sum over programs of (processors used * demand)` is one equation for each set;
//! 4. least squares over all sets, weighted by their number of readings, give the demands.
//!
//! A demand that the sets do not determine stays unknown. It may come out below zero by noise, and then counts as zero.

use std::collections::{BTreeMap, VecDeque};

/// The number of readings from which the median of a set counts.
const READINGS_MIN: usize = 8;
/// The number of readings of a set that are remembered, so that the median follows a machine that changes.
const READINGS_MAX: usize = 63;
/// The largest number of sets; a new one beyond it is not taken in.
const SETS_MAX: usize = 1024;
/// The largest distance of a used share from a whole number of processors. A program that began or stopped during the probe is further away.
const ROUNDING_MAX: f64 = 0.25;
/// A pivot smaller than this share of its column is zero but for rounding.
const PIVOT_MIN: f64 = 1e-9;

/// One of the things whose demand is estimated: a phase of a program.
pub type Source = usize;

/// Readings by set, and the demands that follow from them.
///
/// A demand is the slow-down that one processor causes that runs the source: 0.5 if a reading takes half as long again beside it.
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
    sets: BTreeMap<Vec<(Source, u32)>, VecDeque<f64>>,
}

impl Pressures {
    /// Adds a reading: the processors that each source used meanwhile, and its time. Returns false if it is of no use.
    pub fn add(&mut self, used: &[(Source, f64)], took_us: f64) -> bool {
        let mut set: Vec<(Source, u32)> = Vec::new();
        for (source, processors) in used {
            if (processors - processors.round()).abs() > ROUNDING_MAX {
                return false;
            }
            match set.iter_mut().find(|(known, _)| known == source) {
                Some((_, sum)) => *sum += processors.round() as u32,
                None => set.push((*source, processors.round() as u32)),
            }
        }
        set.retain(|(_, processors)| *processors > 0);
        if !took_us.is_normal() || (self.sets.len() >= SETS_MAX && !self.sets.contains_key(&set)) {
            return false;
        }
        set.sort_unstable();
        let readings = self.sets.entry(set).or_default();
        readings.push_back(took_us);
        if readings.len() > READINGS_MAX {
            readings.pop_front();
        }
        true
    }

    /// Returns the demand of each source that the readings determine.
    pub fn demands(&self) -> BTreeMap<Source, f64> {
        let known = self.sets.iter().filter(|(_, readings)| readings.len() >= READINGS_MIN);
        let medians: Vec<(&[(Source, u32)], f64, f64)> =
            known.map(|(set, readings)| (&set[..], median(readings), readings.len() as f64)).collect();
        let undisturbed_us = medians.iter().map(|row| row.1).fold(f64::INFINITY, f64::min);
        let rows: Vec<(&[(Source, u32)], f64, f64)> =
            medians.into_iter().map(|(set, took_us, weight)| (set, took_us / undisturbed_us - 1.0, weight)).collect();
        let mut sources: Vec<Source> = rows.iter().flat_map(|row| row.0.iter().map(|(source, _)| *source)).collect();
        sources.sort_unstable();
        sources.dedup();
        let place = |source: &Source| sources.binary_search(source).expect("it is one of them");
        // The normal equations of least squares, with the right side as the last column.
        let count = sources.len();
        let mut equations = vec![vec![0.0; count + 1]; count];
        for (set, slow_down, weight) in rows {
            for (source, processors) in set {
                let line = &mut equations[place(source)];
                let weight = weight * f64::from(*processors);
                set.iter().for_each(|(other, with)| line[place(other)] += weight * f64::from(*with));
                line[count] += weight * slow_down;
            }
        }
        let solved = solve(equations);
        sources.iter().zip(solved).filter_map(|(source, demand)| Some((*source, demand?.max(0.0)))).collect()
    }
}

fn median(readings: &VecDeque<f64>) -> f64 {
    let mut sorted: Vec<f64> = readings.iter().copied().collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

/// Solves equations by elimination (Gauss and Jordan). `None` for each unknown that they leave open.
fn solve(mut equations: Vec<Vec<f64>>) -> Vec<Option<f64>> {
    let count = equations.len();
    let largest: Vec<f64> = (0..count).map(|column| equations[column][column]).collect();
    let mut pivots: Vec<Option<usize>> = vec![None; count];
    let mut next = 0;
    for column in 0..count {
        let rows = next..count;
        let best = rows.max_by(|a, b| equations[*a][column].abs().total_cmp(&equations[*b][column].abs()));
        let Some(best) = best.filter(|row| equations[*row][column].abs() > PIVOT_MIN * largest[column]) else {
            continue;
        };
        equations.swap(next, best);
        let pivot = equations[next][column];
        equations[next].iter_mut().for_each(|factor| *factor /= pivot);
        let line = equations[next].clone();
        for (_, other) in equations.iter_mut().enumerate().filter(|(row, _)| *row != next) {
            let factor = other[column];
            other.iter_mut().zip(&line).for_each(|(value, of_pivot)| *value -= factor * of_pivot);
        }
        pivots[column] = Some(next);
        next += 1;
    }
    let open: Vec<usize> = (0..count).filter(|column| pivots[*column].is_none()).collect();
    let of = |row: usize| {
        let depends = open.iter().any(|column| equations[row][*column].abs() > PIVOT_MIN);
        (!depends).then(|| equations[row][count])
    };
    pivots.iter().map(|pivot| pivot.and_then(of)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pressures of a machine on which an undisturbed reading takes 10 us.
    fn undisturbed() -> Pressures {
        let mut pressures = Pressures::default();
        (0..8).for_each(|_| assert!(pressures.add(&[], 10.0)));
        pressures
    }

    /// Adds `count` readings beside a set of sources, one processor each, whose demands are `demands[source]`, with noise.
    fn read(pressures: &mut Pressures, set: &[Source], demands: &[f64], count: usize, noise: &mut dyn FnMut() -> f64) {
        let used: Vec<(Source, f64)> = set.iter().map(|source| (*source, 1.0)).collect();
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
    fn fewer_than_eight_readings_of_a_set_tell_nothing() {
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
}
