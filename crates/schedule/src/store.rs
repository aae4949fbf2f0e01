//! The data kept between executions, in plain form. The caller writes it to a file and reads it back.

use std::collections::{BTreeMap, BTreeSet};

use crate::ideal::Work;
use crate::machine::Key;
use crate::phases::Phases;
use crate::transitions::Followed;

/// All that was learned on one machine. Bandwidth is a property of the machine, so each machine needs its own store.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Store {
    /// By build: the part that is the same for all inputs.
    pub programs: BTreeMap<String, Program>,
    /// Pairs of builds, the smaller name first, that proved wrong often enough not to run together any more.
    pub dropped: BTreeSet<(String, String)>,
}

/// A program, by its build.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// Phases belong to the code, so executions with other inputs use them too.
    pub phases: Phases,
    /// By input: the part that depends on the input.
    pub inputs: BTreeMap<String, Input>,
    /// How phases followed each other in earlier executions.
    pub followed: Followed,
}

/// A program with one input.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Input {
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
    /// The number of values.
    pub count: u64,
}

/// The number of values that a [`Recent`] remembers.
const RECENT: u64 = 8;
/// The number of executions in each order from which they are compared.
const TIMES_MIN: u64 = 2;

impl Recent {
    /// Adds a value.
    pub fn take_in(&mut self, value: f64) {
        self.count += 1;
        self.mean += (value - self.mean) / self.count.min(RECENT) as f64;
    }
}

/// Processor time of whole executions with an input, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    /// In the system's order.
    pub usual: Recent,
    /// When the scheduler chose the programs.
    pub chosen: Recent,
}

impl Times {
    /// Returns the mean time in the system's order, and when chosen; `None` before there are two of each.
    pub fn both(&self) -> Option<(f64, f64)> {
        (self.usual.count.min(self.chosen.count) >= TIMES_MIN).then_some((self.usual.mean, self.chosen.mean))
    }
}

impl Input {
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
    let time_us = |(phase, count): (&usize, &f64)| match phases.get(*phase) {
        Some(phase) if phase.rate.mean > 0.0 => count / phase.rate.mean,
        _ => 0.0,
    };
    instructions.iter().map(time_us).sum()
}

/// Returns the requests of this work, by phase, where it is measured in processor time.
pub(crate) fn requests_of(work_us: &BTreeMap<usize, f64>, phases: &Phases) -> f64 {
    work_us.iter().map(|(phase, us)| phases.get(*phase).map_or(0.0, |phase| phase.bandwidth.mean) * us).sum()
}

impl Store {
    /// Returns the work of a whole execution, as far as it is known; `None` before the first one.
    pub fn work(&self, key: &Key, threads: usize) -> Option<Work> {
        let program = self.programs.get(&key.build)?;
        let input = program.inputs.get(&key.input).filter(|input| input.runs > 0)?;
        Some(Work { alone_us: alone_us(&input.instructions, &program.phases), requests: input.requests, threads })
    }

    /// Returns the coverage of a program, from 0 to 1.
    pub fn coverage(&self, build: &str) -> f64 {
        self.programs.get(build).map_or(0.0, |program| program.phases.coverage())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::{BlockVector, Buckets};
    use crate::phases::Similarity;

    /// Makes two phases of 1,000 and 500 instructions per microsecond.
    fn phases() -> Phases {
        let mut phases = Phases::default();
        for (address, rate) in [(0, 1000.0), (640, 500.0)] {
            let vector = BlockVector::of(&[address], &Buckets::Bytes(64));
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
        let mut input = Input::default();
        input.take_in(100.0, &BTreeMap::from([(0, 10.0)]));
        input.take_in(200.0, &BTreeMap::from([(0, 20.0), (1, 30.0)]));
        assert_eq!((input.runs, input.requests), (2, 150.0));
        assert_eq!(input.instructions, BTreeMap::from([(0, 15.0), (1, 15.0)]));
    }

    #[test]
    fn time_and_requests_are_kept_by_input_and_phases_by_program() {
        let mut store = Store::default();
        let program = store.programs.entry("a".into()).or_default();
        program.phases = phases();
        program.inputs.entry("small".into()).or_default().take_in(7.0, &BTreeMap::from([(1, 1000.0)]));
        let work = |input: &str| store.work(&Key { build: "a".into(), input: input.into() }, 1);
        assert_eq!(work("small"), Some(Work { alone_us: 2.0, requests: 7.0, threads: 1 }));
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
