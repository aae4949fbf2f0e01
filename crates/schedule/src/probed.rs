//! Demands of the phases of programs, on a machine that reads memory and counts nothing (beyond the paper).
//!
//! A quantum's readings belong to the phases that its programs had in it. Work is measured in microseconds of processor time, and a request is
//! the pressure of one unit of slow-down for a microsecond; the policy only compares demands with each other, so their unit does not matter.
//!
//! What a program loses beside others cannot be measured without a count of instructions. [`losses`] estimates it.

use std::collections::BTreeMap;

use crate::machine::{ProgramId, Reading};
use crate::pressure::{Pressures, Source};

/// The number of quanta after which the demands are computed again.
const QUANTA: u32 = 10;

/// The largest demand from which programs can lose at all. On a machine at hand without contention, medians of readings differed by up to a quarter
/// while foreign programs came and went; on one with contention, a demanding program slowed readings down by more than a half.
const DEMAND_MIN: f64 = 0.3;

/// A phase of a program: its build, and the place of the phase.
pub(crate) type Place = (String, usize);

/// The readings of this session, by phase.
#[derive(Clone, Debug, Default)]
pub(crate) struct Probed {
    pressures: Pressures,
    sources: BTreeMap<Place, Source>,
    quanta: u32,
}

impl Probed {
    /// Adds a quantum's readings. `phase` returns the phase of a program in this quantum.
    pub(crate) fn add(&mut self, readings: &[Reading], phase: impl Fn(ProgramId) -> Option<Place>) {
        for reading in readings {
            let used = reading.used.iter().filter(|(_, processors)| *processors > 0.0);
            let sources: Option<Vec<(Source, f64)>> = used
                .map(|(id, processors)| {
                    let next = self.sources.len();
                    Some((*self.sources.entry(phase(*id)?).or_insert(next), *processors))
                })
                .collect();
            if let Some(sources) = sources {
                self.pressures.add(&sources, reading.took_us);
            }
        }
    }

    /// Returns the demands that the readings determine, from time to time.
    pub(crate) fn demands(&mut self) -> Vec<(&Place, f64)> {
        self.quanta += 1;
        if !self.quanta.is_multiple_of(QUANTA) {
            return Vec::new();
        }
        let demands = self.pressures.demands();
        self.sources.iter().filter_map(|(place, source)| Some((place, *demands.get(source)?))).collect()
    }
}

/// Estimates the share of its speed that each program lost.
///
/// `programs` has the demand of each and the processors that it used in the quantum; `demand_max` is the largest demand of all that are known. A
/// program meets the others on `processors - 1` processors at most. It is slowed down like a reading beside them, as far as its own demand
/// reaches the largest one: a program that hardly uses the memory hardly waits for it.
pub(crate) fn losses(programs: &[(f64, f64)], demand_max: f64, processors: usize) -> Vec<f64> {
    let all = programs.iter().fold((0.0, 0.0), |sum, (demand, used)| (sum.0 + demand * used, sum.1 + used));
    let loss = |(demand, used): &(f64, f64)| {
        let others_used = all.1 - used;
        let together = if others_used > 0.0 { ((processors as f64 - 1.0) / others_used).min(1.0) } else { 0.0 };
        let slow_down = ((all.0 - demand * used) * together).max(0.0);
        let exposed = if demand_max >= DEMAND_MIN { (demand / demand_max).min(1.0) } else { 0.0 };
        exposed * slow_down / (1.0 + slow_down)
    };
    programs.iter().map(loss).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_loses_what_a_reading_beside_the_others_loses() {
        // Two of three run at a time, on two processors: beside the first runs the second or the third.
        let losses = losses(&[(1.0, 0.5), (1.0, 0.75), (0.0, 0.75)], 1.0, 2);
        let expected = 0.5 / 1.5;
        assert!((losses[0] - expected).abs() < 1e-9 && losses[2] == 0.0, "{losses:?}");
    }

    #[test]
    fn nobody_loses_where_no_program_presses_or_none_runs_beside_it() {
        assert_eq!(losses(&[(0.0, 1.0), (0.0, 1.0)], 0.0, 2), [0.0, 0.0]);
        assert_eq!(losses(&[(1.0, 1.0)], 1.0, 2), [0.0]);
        assert_eq!(losses(&[(1.0, 0.5), (1.0, 0.5)], 1.0, 1), [0.0, 0.0]);
    }

    #[test]
    fn demands_that_may_be_noise_cost_nobody_anything() {
        assert_eq!(losses(&[(0.25, 1.0), (0.25, 1.0)], 0.25, 2), [0.0, 0.0]);
        assert!(losses(&[(0.6, 1.0), (0.6, 1.0)], 0.6, 2).iter().all(|loss| *loss > 0.3));
    }

    #[test]
    fn a_reading_beside_a_program_without_a_phase_is_left_out() {
        let mut probed = Probed::default();
        let reading = |id: u32| Reading { took_us: 10.0, used: vec![(ProgramId(id), 1.0), (ProgramId(9), 0.0)] };
        let phase = |id: ProgramId| (id.0 == 1).then(|| ("a".to_owned(), 3));
        (0..8).for_each(|_| probed.add(&[reading(1), reading(2)], phase));
        let demands: Vec<_> = (0..QUANTA)
            .flat_map(|_| {
                let demands: Vec<(Place, f64)> =
                    probed.demands().into_iter().map(|(place, demand)| (place.clone(), demand)).collect();
                demands
            })
            .collect();
        assert_eq!(demands, [(("a".to_owned(), 3), 0.0)]);
    }
}
