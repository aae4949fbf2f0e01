//! Knowledge from earlier executions and the current one: the paper's method.
//!
//! After each quantum, for each program that ran:
//!
//! 1. its samples become a basic-block vector, which determines its phase;
//! 2. the bandwidths of all programs tell whether it ran in one of the three states of little contention;
//! 3. its speed and bandwidth update the estimates of that phase, as valid or invalid samples;
//! 4. the phase updates the execution's transitions, which predict the next phase.
//!
//! At the end of a whole execution, its requests and its instructions by phase update the record of its input.

use std::collections::BTreeMap;

use crate::blocks::{BlockVector, Buckets};
use crate::contention::{Little, Thresholds};
use crate::ideal::Work;
use crate::knowledge::{Forecast, Knowledge, Progress};
use crate::machine::{Arrival, Counts, Key, Limits, ProgramId, Quantum, Ran, Reading};
use crate::phases::Similarity;
use crate::probed::{Probed, losses};
use crate::store::{Store, alone_us, requests_of};
use crate::transitions::Transitions;

/// The parameters of learning.
#[derive(Clone, Debug, PartialEq)]
pub struct Learning {
    /// The meaning of a vector's elements.
    pub buckets: Buckets,
    /// The rule by which two quanta belong to one phase.
    pub similarity: Similarity,
    /// The thresholds of little contention.
    pub thresholds: Thresholds,
    /// The coverage from which a program's profile is used.
    pub coverage_min: f64,
    /// A program that ran for a smaller share of the quantum has too few samples to determine its phase.
    pub ran_min: f64,
}

impl Default for Learning {
    /// Pieces of 64 bytes, and the paper's coverage of 80 %.
    fn default() -> Learning {
        Learning {
            buckets: Buckets::Bytes(64),
            similarity: Similarity::default(),
            thresholds: Thresholds::default(),
            coverage_min: 0.8,
            ran_min: 0.1,
        }
    }
}

/// The paper's knowledge: a store, and the findings from current executions.
#[derive(Clone, Debug)]
pub struct Learned {
    learning: Learning,
    store: Store,
    executions: BTreeMap<ProgramId, Execution>,
    /// The number of quanta in each state, by build.
    states: BTreeMap<String, BTreeMap<Option<Little>, u64>>,
    /// The readings of memory, on a machine that does not count.
    probed: Option<Probed>,
}

/// A current execution.
#[derive(Clone, Debug)]
struct Execution {
    key: Key,
    threads: usize,
    transitions: Transitions,
    phase: Option<usize>,
    requests: f64,
    /// The executed instructions by phase.
    instructions: BTreeMap<usize, f64>,
    progress: Option<Progress>,
}

impl Learned {
    /// Continues from the content of a store.
    pub fn new(store: Store, learning: Learning) -> Learned {
        Learned { learning, store, executions: BTreeMap::new(), states: BTreeMap::new(), probed: None }
    }

    /// Continues from the content of a store on a machine that reads memory from time to time instead of counting requests
    /// ([`crate::Pressures`]). The store must come from such a machine, because demands have another unit there.
    ///
    /// `undisturbed` are readings that were taken before any program began.
    pub fn probed(store: Store, learning: Learning, undisturbed: &[Reading]) -> Learned {
        let mut probed = Probed::default();
        probed.add(undisturbed, |_| None);
        Learned { probed: Some(probed), ..Learned::new(store, learning) }
    }

    /// The store with all that has been learned.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the store, to be kept for the next time.
    pub fn into_store(self) -> Store {
        self.store
    }

    /// The number of quanta in each of the three states and in none, by build, since this value was made.
    pub fn states(&self) -> &BTreeMap<String, BTreeMap<Option<Little>, u64>> {
        &self.states
    }

    fn learn_of(&mut self, ran: &Ran, state: Option<Little>, quantum_us: f64) {
        let Some(execution) = self.executions.get_mut(&ran.id) else { return };
        execution.progress = None;
        let is_probed = self.probed.is_some();
        // Without counters, work is processor time.
        let work = is_probed.then_some(Counts { instructions: ran.processor_us, requests: 0.0 });
        let Some(counts) = ran.counts.or(work) else { return };
        let ran_us = ran.processor_us / execution.threads as f64;
        if ran_us <= 0.0 {
            return;
        }
        let program = self.store.programs.entry(execution.key.build.clone()).or_default();
        // The only sample of a program that ends at once. Without it, the program would never be covered.
        let is_first = execution.phase.is_none();
        let is_sample = is_first || ran_us >= self.learning.ran_min * quantum_us;
        let phase = match execution.phase {
            // Too short to determine the phase, so the previous phase continues.
            Some(phase) if !is_sample => phase,
            _ => {
                let vector = BlockVector::of(&ran.addresses, &self.learning.buckets);
                program.phases.recognise(&vector, &self.learning.similarity)
            }
        };
        execution.phase = Some(phase);
        execution.requests += counts.requests;
        *execution.instructions.entry(phase).or_default() += counts.instructions;
        if is_sample {
            let (rate, bandwidth) = (counts.instructions / ran_us, counts.requests / ran_us);
            execution.transitions.observe(phase);
            if is_probed {
                return;
            }
            program.phases.update(phase, rate, bandwidth, state.is_some());
            let states = self.states.entry(execution.key.build.clone()).or_default();
            *states.entry(state).or_default() += 1;
        }
        let known = program.phases.get(phase).map(|phase| phase.rate).filter(|rate| rate.valid && rate.mean > 0.0);
        execution.progress = known.map(|rate| Progress { ran_us, alone_us: counts.instructions / rate.mean });
    }
}

/// Without counters.
impl Learned {
    /// Takes in a quantum's readings, and what follows from all of them.
    fn learn_from_readings(&mut self, quantum: &Quantum, limits: &Limits) {
        let Some(probed) = &mut self.probed else { return };
        probed.add(&quantum.readings, |id| {
            let execution = self.executions.get(&id)?;
            Some((execution.key.build.clone(), execution.phase?))
        });
        for ((build, phase), demand) in probed.demands() {
            if let Some(program) = self.store.programs.get_mut(build) {
                program.phases.set_demand(*phase, demand);
            }
        }
        let demand = |ran: &Ran| {
            let execution = self.executions.get(&ran.id)?;
            let phase = self.store.programs.get(&execution.key.build)?.phases.get(execution.phase?)?;
            phase.bandwidth.valid.then_some(phase.bandwidth.mean)
        };
        let demands: Vec<Option<f64>> = quantum.ran.iter().map(demand).collect();
        let phases = self.store.programs.values().flat_map(|program| program.phases.iter());
        let largest = phases.map(|phase| phase.bandwidth.mean).fold(0.0, f64::max);
        let used: Vec<(f64, f64)> = quantum
            .ran
            .iter()
            .zip(&demands)
            .map(|(ran, demand)| (demand.unwrap_or(0.0), ran.processor_us / quantum.length_us))
            .collect();
        for ((ran, demand), loss) in quantum.ran.iter().zip(demands).zip(losses(&used, largest, limits.processors)) {
            let Some(execution) = self.executions.get_mut(&ran.id) else { continue };
            let ran_us = ran.processor_us / execution.threads as f64;
            execution.progress = demand.map(|_| Progress { ran_us, alone_us: ran_us * (1.0 - loss) });
        }
    }
}

impl Knowledge for Learned {
    fn begin(&mut self, arrival: &Arrival) {
        let execution = Execution {
            key: arrival.key.clone(),
            threads: arrival.threads.max(1),
            transitions: Transitions::default(),
            phase: None,
            requests: 0.0,
            instructions: BTreeMap::new(),
            progress: None,
        };
        self.executions.insert(arrival.id, execution);
    }

    fn learn(&mut self, quantum: &Quantum, limits: &Limits) {
        let requests = |ran: &Ran| ran.counts.map_or(0.0, |counts| counts.requests);
        let used: Vec<f64> = quantum.ran.iter().map(|ran| requests(ran) / quantum.length_us).collect();
        let foreign = quantum.foreign_requests / quantum.length_us;
        let states = self.learning.thresholds.states(&used, foreign, limits.peak);
        for (ran, state) in quantum.ran.iter().zip(states) {
            self.learn_of(ran, state, quantum.length_us);
        }
        self.learn_from_readings(quantum, limits);
    }

    fn end(&mut self, id: ProgramId, whole: bool) {
        let Some(execution) = self.executions.remove(&id) else { return };
        if whole && execution.phase.is_some() {
            let program = self.store.programs.entry(execution.key.build).or_default();
            let input = program.inputs.entry(execution.key.input).or_default();
            input.take_in(execution.requests, &execution.instructions);
        }
    }

    fn forecast(&self, id: ProgramId) -> Option<Forecast> {
        let execution = self.executions.get(&id)?;
        let program = self.store.programs.get(&execution.key.build)?;
        let mut whole = self.store.work(&execution.key, execution.threads)?;
        let mut requests = execution.requests;
        if self.probed.is_some() {
            // A demand may become known after the run that was measured.
            let input = program.inputs.get(&execution.key.input)?;
            whole.requests = requests_of(&input.instructions, &program.phases);
            requests = requests_of(&execution.instructions, &program.phases);
        }
        if program.phases.coverage() < self.learning.coverage_min {
            return None;
        }
        // At the start the phase is unknown, so the program's mean is used.
        let mean = if whole.alone_us > 0.0 { whole.requests / whole.alone_us } else { 0.0 };
        let next = execution.transitions.next().and_then(|place| program.phases.get(place));
        let left = Work {
            alone_us: (whole.alone_us - alone_us(&execution.instructions, &program.phases)).max(0.0),
            requests: (whole.requests - requests).max(0.0),
            ..whole
        };
        Some(Forecast { demand: next.map_or(mean, |phase| phase.bandwidth.mean), whole, left })
    }

    fn progress(&self, id: ProgramId) -> Option<Progress> {
        self.executions.get(&id)?.progress
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Counts;

    const LIMITS: Limits = Limits { processors: 2, quota: f64::INFINITY, memory_bytes: 0, peak: 120.0 };

    fn arrival(id: u32, build: &str) -> Arrival {
        let key = Key { build: build.into(), input: "i".into() };
        Arrival { id: ProgramId(id), key, threads: 1, memory_bytes: 0 }
    }

    /// Returns the record of a program that ran for a whole quantum of 1,000 microseconds.
    fn ran(id: u32, rate: f64, bandwidth: f64, address: u64) -> Ran {
        let counts = Counts { instructions: rate * 1000.0, requests: bandwidth * 1000.0 };
        Ran { id: ProgramId(id), processor_us: 1000.0, counts: Some(counts), addresses: vec![address; 100] }
    }

    fn quantum(ran: Vec<Ran>) -> Quantum {
        Quantum { length_us: 1000.0, ran, ..Quantum::default() }
    }

    fn learned() -> Learned {
        Learned::new(Store::default(), Learning::default())
    }

    #[test]
    fn quanta_without_contention_are_valid_and_replace_the_others() {
        let mut learned = learned();
        learned.begin(&arrival(1, "a"));
        learned.begin(&arrival(2, "b"));
        let rate = |learned: &Learned| learned.store.programs["a"].phases.get(0).map(|phase| phase.rate);
        learned.learn(&quantum(vec![ran(1, 600.0, 40.0, 0), ran(2, 600.0, 50.0, 0)]), &LIMITS);
        assert_eq!(rate(&learned).map(|rate| (rate.mean, rate.valid)), Some((600.0, false)));
        // The neighbour demands little, so the program runs at its own speed.
        learned.learn(&quantum(vec![ran(1, 1000.0, 60.0, 0), ran(2, 900.0, 1.0, 640)]), &LIMITS);
        assert_eq!(rate(&learned).map(|rate| (rate.mean, rate.valid)), Some((1000.0, true)));
        assert_eq!(learned.states()["a"], BTreeMap::from([(None, 1), (Some(Little::OnlyOne), 1)]));
        assert_eq!(learned.states()["b"], BTreeMap::from([(None, 1), (Some(Little::OwnDemand), 1)]));
    }

    #[test]
    fn a_program_below_80_percent_of_coverage_has_no_forecast() {
        let mut learned = learned();
        for turn in 0..2 {
            learned.begin(&arrival(turn, "a"));
            learned.begin(&arrival(10 + turn, "b"));
            for _ in 0..3 {
                learned.learn(&quantum(vec![ran(turn, 1000.0, 60.0, 0)]), &LIMITS);
            }
            // A quarter of its quanta was never seen without contention.
            learned.learn(&quantum(vec![ran(turn, 500.0, 40.0, 640), ran(10 + turn, 500.0, 40.0, 0)]), &LIMITS);
            assert_eq!(learned.forecast(ProgramId(turn)), None);
            learned.end(ProgramId(turn), true);
        }
        assert_eq!(learned.store.coverage("a"), 0.75);
        learned.begin(&arrival(2, "a"));
        learned.learn(&quantum(vec![ran(2, 800.0, 60.0, 640)]), &LIMITS);
        assert_eq!(learned.store.coverage("a"), 1.0);
        assert!(learned.forecast(ProgramId(2)).is_some());
    }

    #[test]
    fn a_program_without_a_whole_execution_has_no_forecast() {
        let mut learned = learned();
        for turn in 0..2 {
            learned.begin(&arrival(turn, "a"));
            learned.learn(&quantum(vec![ran(turn, 1000.0, 60.0, 0)]), &LIMITS);
            assert_eq!(learned.forecast(ProgramId(turn)), None);
            // A killed execution does not count: its time and requests are incomplete.
            learned.end(ProgramId(turn), false);
        }
        assert_eq!(learned.store.coverage("a"), 1.0);
    }

    /// A thousand short commands among some long ones were never covered, so the scheduler never chose.
    #[test]
    fn a_program_that_ends_at_once_is_covered_by_its_first_execution() {
        let mut learned = learned();
        learned.begin(&arrival(0, "a"));
        let counts = Counts { instructions: 2000.0, requests: 40.0 };
        let short = Ran { id: ProgramId(0), processor_us: 2.0, counts: Some(counts), addresses: vec![] };
        learned.learn(&quantum(vec![short]), &LIMITS);
        learned.end(ProgramId(0), true);
        learned.begin(&arrival(1, "a"));
        let forecast = learned.forecast(ProgramId(1)).expect("it is known");
        assert_eq!((forecast.whole.alone_us, forecast.whole.requests), (2.0, 40.0));
    }

    #[test]
    fn a_short_piece_of_a_quantum_does_not_determine_a_phase() {
        let mut learned = learned();
        learned.begin(&arrival(0, "a"));
        learned.learn(&quantum(vec![ran(0, 1000.0, 60.0, 0)]), &LIMITS);
        let piece = Ran { processor_us: 50.0, addresses: vec![640; 2], ..ran(0, 1000.0, 60.0, 0) };
        learned.learn(&quantum(vec![piece]), &LIMITS);
        let phases = &learned.store.programs["a"].phases;
        assert_eq!((phases.len(), phases.get(0).map(|phase| phase.quanta)), (1, Some(1)));
    }

    #[test]
    fn the_forecast_is_the_bandwidth_of_the_phase_that_comes_next() {
        let mut learned = learned();
        let phases = [(0, 60.0), (640, 10.0)];
        for execution in 0..2 {
            learned.begin(&arrival(execution, "a"));
            for turn in 0..6 {
                let (address, bandwidth) = phases[turn % 2];
                learned.learn(&quantum(vec![ran(execution, 1000.0, bandwidth, address)]), &LIMITS);
                if execution == 1 && turn > 1 {
                    let forecast = learned.forecast(ProgramId(1)).expect("it is known");
                    assert_eq!(forecast.demand, phases[(turn + 1) % 2].1);
                    assert!((forecast.left.alone_us - 1000.0 * (5 - turn) as f64).abs() < 1e-6);
                }
            }
            learned.end(ProgramId(execution), true);
        }
        learned.begin(&arrival(2, "a"));
        let forecast = learned.forecast(ProgramId(2)).expect("it is known");
        assert_eq!((forecast.demand, forecast.whole.alone_us), (35.0, 6000.0));
    }

    #[test]
    fn a_machine_that_does_not_count_gives_no_forecast() {
        let mut learned = learned();
        for turn in 0..3 {
            learned.begin(&arrival(turn, "a"));
            learned.learn(&quantum(vec![Ran { counts: None, ..ran(turn, 1.0, 1.0, 0) }]), &LIMITS);
            learned.end(ProgramId(turn), true);
        }
        learned.begin(&arrival(3, "a"));
        assert_eq!(learned.forecast(ProgramId(3)), None);
    }

    /// Runs programs 1 and 2 for some quanta on two processors. A reading beside program 1 takes twice as long, beside program 2 as ever.
    fn read_beside(learned: &mut Learned, quanta: usize) {
        for _ in 0..quanta {
            let reading = |id: u32, took_us: f64| Reading { took_us, used: vec![(ProgramId(id), 1.0)] };
            let both = [1, 2].map(|id| Ran { counts: None, ..ran(id, 0.0, 0.0, u64::from(id) * 640) });
            let readings = vec![reading(1, 20.0), reading(2, 10.0)];
            learned.learn(&Quantum { readings, ..quantum(both.into()) }, &LIMITS);
        }
    }

    #[test]
    fn readings_give_a_forecast_on_a_machine_that_does_not_count() {
        let undisturbed = vec![Reading { took_us: 10.0, used: vec![] }; 8];
        let mut learned = Learned::probed(Store::default(), Learning::default(), &undisturbed);
        for turn in 0..2 {
            learned.begin(&arrival(1, "a"));
            learned.begin(&arrival(2, "b"));
            assert_eq!(learned.forecast(ProgramId(1)).is_some(), turn == 1);
            read_beside(&mut learned, 10);
            if turn == 0 {
                (1..=2).for_each(|id| learned.end(ProgramId(id), true));
            }
        }
        let demands = [1, 2].map(|id| learned.forecast(ProgramId(id)).map(|forecast| forecast.demand));
        assert_eq!(demands, [Some(1.0), Some(0.0)]);
        let forecast = learned.forecast(ProgramId(1)).expect("it is known");
        assert_eq!((forecast.whole.alone_us, forecast.whole.requests, forecast.left.alone_us), (1e4, 1e4, 0.0));
        // Beside a program without demand, nothing is lost.
        assert_eq!(learned.progress(ProgramId(1)), Some(Progress { ran_us: 1000.0, alone_us: 1000.0 }));
        // The next session knows it from its start.
        let mut next = Learned::probed(learned.into_store(), Learning::default(), &undisturbed);
        next.begin(&arrival(1, "a"));
        assert_eq!(next.forecast(ProgramId(1)).map(|forecast| forecast.demand), Some(1.0));
    }
}
