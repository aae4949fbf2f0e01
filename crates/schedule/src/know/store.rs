//! The data kept between executions, in plain form. The caller writes it to a file and reads it back.

use std::collections::{BTreeMap, BTreeSet};

use crate::know::phases::Phases;
use crate::know::transitions::Followed;
use crate::know::work::ProgramWork;
use crate::machine::Key;
use crate::uncounted::pressure::Pressure;
use crate::uncounted::probed::PhaseKey;

/// All that was learned on one machine. Bandwidth is a property of the machine, so each machine needs its own store.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Store {
    /// By build: the part that is the same for all inputs.
    pub programs: BTreeMap<String, KnownProgram>,
    /// Pairs of builds, the smaller name first, that proved wrong often enough not to run together any more.
    pub dropped: BTreeSet<(String, String)>,
}

/// A program, by its build.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KnownProgram {
    /// Phases belong to the code, so executions with other inputs use them too.
    pub phases: Phases,
    /// By input: the part that depends on the input.
    pub inputs: BTreeMap<String, KnownInput>,
    /// How phases followed each other in earlier executions.
    pub followed: Followed,
    /// The slow-down that the program as a whole causes, on a machine that does not count.
    pub pressure: Option<Pressure>,
}

/// A program with one input.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KnownInput {
    /// The number of whole executions.
    pub runs: u64,
    /// The mean number of requests of an execution.
    pub requests: f64,
    /// The mean number of instructions of an execution in each phase.
    pub instructions: BTreeMap<usize, f64>,
    /// Processor time, by the order in which it ran.
    pub times: Times,
}

/// A mean that follows what changes: the last eight values weigh most.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Recent {
    /// The mean.
    pub mean: f64,
    /// The mean square of the distances from it.
    pub variance: f64,
    /// The number of values.
    pub count: u64,
}

/// The number of values that a [`Recent`] remembers.
const RECENT: u64 = 8;
/// The number of executions in each order from which they are compared.
const TIMES_MIN: u64 = 3;
/// The least share of processor time that choosing must have saved, once that was measured (beyond the paper; without
/// counters).
const SAVED_MIN: f64 = 0.01;

impl Recent {
    /// Adds a value.
    pub fn take_in(&mut self, value: f64) {
        self.count += 1;
        let weight = 1.0 / self.count.min(RECENT) as f64;
        let off = value - self.mean;
        self.mean += off * weight;
        self.variance = (1.0 - weight) * (self.variance + off * off * weight);
    }

    /// Returns the square of the standard error of the mean; infinite with fewer than two values.
    pub fn error_square(&self) -> f64 {
        match self.count.min(RECENT) {
            0 | 1 => f64::INFINITY,
            count => self.variance / (count - 1) as f64,
        }
    }
}

/// Processor time of whole executions with an input, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    /// In the system's order.
    pub usual: Recent,
    /// When the scheduler chose the programs.
    pub chosen: Recent,
    /// The number of executions in which it was to choose them, whether it did or not.
    pub tried: u64,
}

/// The gain of choosing programs, in microseconds of processor time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gain {
    /// The time in the system's order.
    pub usual_us: f64,
    /// The time that choosing saved.
    pub saved_us: f64,
    /// The square of the standard error of that.
    pub error_square: f64,
}

impl Gain {
    /// Returns whether choosing saved the least share of the time, and more than may be chance: two standard
    /// errors.
    pub fn is_measured(&self) -> bool {
        self.usual_us > 0.0
            && self.saved_us >= self.usual_us * SAVED_MIN
            && self.saved_us > 2.0 * self.error_square.sqrt()
    }
}

impl std::iter::Sum for Gain {
    fn sum<I: Iterator<Item = Gain>>(gains: I) -> Gain {
        gains.fold(Gain::default(), |sum, gain| Gain {
            usual_us: sum.usual_us + gain.usual_us,
            saved_us: sum.saved_us + gain.saved_us,
            error_square: sum.error_square + gain.error_square,
        })
    }
}

impl Times {
    /// Returns what choosing gained; `None` before there are three executions of each kind.
    pub fn gain(&self) -> Option<Gain> {
        (self.usual.count.min(self.chosen.count) >= TIMES_MIN).then(|| Gain {
            usual_us: self.usual.mean,
            saved_us: self.usual.mean - self.chosen.mean,
            error_square: self.usual.error_square() + self.chosen.error_square(),
        })
    }
}

impl KnownInput {
    /// Adds a whole execution.
    pub fn take_in(&mut self, requests: f64, instructions: &BTreeMap<usize, f64>) {
        self.runs += 1;
        let weight = 1.0 / self.runs as f64;
        self.requests += (requests - self.requests) * weight;
        for mean in self.instructions.values_mut() {
            *mean -= *mean * weight;
        }
        for (phase, count) in instructions {
            *self.instructions.entry(*phase).or_default() += count * weight;
        }
    }
}

/// `C_alone = sum_q I_q / IPC_phase(q)`: the time alone of these instructions, by phase (the paper's equation 4).
pub fn alone_us(instructions: &BTreeMap<usize, f64>, phases: &Phases) -> f64 {
    let time_us = |(phase, count): (&usize, &f64)| match phases.rate(*phase) {
        Some(rate) if rate > 0.0 => count / rate,
        _ => 0.0,
    };
    instructions.iter().map(time_us).sum()
}

/// Returns the requests of this work, by phase, where it is measured in processor time.
pub(crate) fn requests_of(work_us: &BTreeMap<usize, f64>, phases: &Phases) -> f64 {
    work_us.iter().map(|(phase, us)| phases.get(*phase).map_or(0.0, |phase| phase.bandwidth.mean) * us).sum()
}

impl Store {
    /// Takes in demands that were found without counters: of programs by their build, and of phases.
    ///
    /// The phases of a real program are many, and few of them are read often enough. The others have the demand of the
    /// program as a whole.
    pub(crate) fn take_demands(&mut self, builds: &BTreeMap<&String, f64>, phases: &BTreeMap<&PhaseKey, f64>) {
        for (build, demand) in builds {
            if let Some(program) = self.programs.get_mut(*build) {
                program.phases.set_missing_demands(*demand);
            }
        }
        for ((build, phase), demand) in phases {
            if let Some(program) = self.programs.get_mut(build) {
                program.phases.set_demand(*phase, *demand);
            }
        }
    }

    /// Returns the work of a whole execution, if it is known; `None` before the first one.
    pub fn work(&self, key: &Key, threads: usize) -> Option<ProgramWork> {
        let program = self.programs.get(&key.build)?;
        let input = program.inputs.get(&key.input).filter(|input| input.runs > 0)?;
        Some(ProgramWork {
            alone_us: alone_us(&input.instructions, &program.phases),
            requests: input.requests,
            threads,
        })
    }

    /// Returns the coverage of a program, from 0 to 1, with the phases that have a neighbour's estimates.
    pub fn coverage(&self, build: &str) -> f64 {
        self.programs.get(build).map_or(0.0, |program| program.phases.coverage_with_neighbours())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::know::blocks::BlockVector;
    use crate::know::phases::Similarity;

    /// Makes two phases of 1,000 and 500 instructions per microsecond.
    fn phases() -> Phases {
        let mut phases = Phases::default();
        for (address, rate) in [(0, 1000.0), (640, 500.0)] {
            let vector = BlockVector::of(&[address]);
            let place = phases.recognise(&vector, &Similarity::default());
            phases.update(place, rate, 10.0, true);
        }
        phases
    }

    #[test]
    fn time_alone_is_the_sum_over_phases_of_instructions_by_their_rate_alone() {
        assert_eq!(alone_us(&BTreeMap::from([(0, 5000.0), (1, 5000.0)]), &phases()), 15.0);
    }

    #[test]
    fn requests_of_an_input_are_the_mean_of_its_executions() {
        let mut input = KnownInput::default();
        input.take_in(100.0, &BTreeMap::from([(0, 10.0)]));
        input.take_in(200.0, &BTreeMap::from([(0, 20.0), (1, 30.0)]));
        assert_eq!((input.runs, input.requests), (2, 150.0));
        assert_eq!(input.instructions, BTreeMap::from([(0, 15.0), (1, 15.0)]));
    }

    /// Times of 100 and 102 in one order and 98 and 99 in the other look like a gain, and are chance.
    #[test]
    fn a_gain_is_measured_only_where_it_is_more_than_chance() {
        let times = |usual: &[f64], chosen: &[f64]| {
            let mut times = Times::default();
            usual.iter().for_each(|us| times.usual.take_in(*us));
            chosen.iter().for_each(|us| times.chosen.take_in(*us));
            times.gain().map(|gain| gain.is_measured())
        };
        assert_eq!(times(&[100.0, 102.0], &[90.0, 90.0, 90.0]), None);
        assert_eq!(times(&[100.0, 102.0, 98.0], &[90.0, 91.0, 89.0]), Some(true));
        assert_eq!(times(&[100.0, 120.0, 80.0], &[90.0, 110.0, 70.0]), Some(false));
        // Half a percent is less than it costs.
        assert_eq!(times(&[100.0, 100.0, 100.0], &[99.5, 99.5, 99.5]), Some(false));
        assert_eq!(times(&[100.0, 101.0, 99.0], &[110.0, 111.0, 109.0]), Some(false));
    }

    #[test]
    fn the_error_of_a_mean_is_that_of_its_last_values() {
        let mut recent = Recent::default();
        assert_eq!(recent.error_square(), f64::INFINITY);
        [1.0, 2.0, 3.0].iter().for_each(|value| recent.take_in(*value));
        // The sample variance of 1, 2, 3 is 1.
        assert!((recent.mean - 2.0).abs() < 1e-12 && (recent.error_square() - 1.0 / 3.0).abs() < 1e-12);
        (0..100).for_each(|_| recent.take_in(7.0));
        assert!((recent.mean - 7.0).abs() < 1e-4 && recent.error_square() < 1e-4, "{recent:?}");
    }

    #[test]
    fn time_and_requests_are_kept_by_input_and_phases_by_program() {
        let mut store = Store::default();
        let program = store.programs.entry("a".into()).or_default();
        program.phases = phases();
        program.inputs.entry("small".into()).or_default().take_in(7.0, &BTreeMap::from([(1, 1000.0)]));
        let work = |input: &str| store.work(&Key { build: "a".into(), input: input.into() }, 1);
        assert_eq!(work("small"), Some(ProgramWork { alone_us: 2.0, requests: 7.0, threads: 1 }));
        assert_eq!(work("large"), None);
        assert_eq!(store.coverage("a"), 1.0);
    }

    #[test]
    fn a_better_estimate_of_a_phase_corrects_the_time_of_executions_that_are_over() {
        let mut store = Store::default();
        let key = Key { build: "a".into(), input: "i".into() };
        let program = store.programs.entry("a".into()).or_default();
        let place = program.phases.recognise(&BlockVector::default(), &Similarity::default());
        program.phases.update(place, 500.0, 10.0, false);
        program.inputs.entry("i".into()).or_default().take_in(7.0, &BTreeMap::from([(place, 1000.0)]));
        assert_eq!(store.work(&key, 1).map(|work| work.alone_us), Some(2.0));
        store.programs.get_mut("a").expect("it is there").phases.update(place, 1000.0, 10.0, true);
        assert_eq!(store.work(&key, 1).map(|work| work.alone_us), Some(1.0));
    }
}
