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

use std::collections::{BTreeMap, BTreeSet};

use crate::know::contention::{Little, SYSTEM_LOW, states};
use crate::know::execution::{Execution, PhasePiece};
use crate::know::knowledge::{Forecast, Knowledge, Order, Progress, Tally};
use crate::know::learning::{COVERAGE_KEPT, COVERAGE_MIN, Learning, SAMPLES_ENOUGH};
use crate::know::phases::Phase;
use crate::know::store::{Gain, Store, alone_us, requests_of};
use crate::know::work::ProgramWork;
use crate::machine::{Arrival, Counts, Key, Limits, ProgramId, Quantum, Ran, Reading};
use crate::uncounted::probed::{Probed, avoidable};
use crate::uncounted::today::Today;

/// The paper's knowledge: a store, and the findings from current executions.
#[derive(Clone, Debug)]
pub struct Learned {
    learning: Learning,
    store: Store,
    executions: BTreeMap<ProgramId, Execution>,
    /// The builds of which enough is known.
    covered: BTreeSet<String>,
    /// The number of quanta in each state, by build.
    states: BTreeMap<String, BTreeMap<Option<Little>, u64>>,
    /// The readings of memory, on a machine that does not count.
    probed: Option<Probed>,
    today: Today,
    /// The order of the current quantum.
    order: Order,
}

impl Learned {
    /// Continues from the content of a store.
    pub fn new(store: Store, learning: Learning) -> Learned {
        Learned {
            learning,
            store,
            executions: BTreeMap::new(),
            covered: BTreeSet::new(),
            states: BTreeMap::new(),
            probed: None,
            today: Today::default(),
            order: Order::default(),
        }
    }

    /// Continues from the content of a store on a machine that takes readings of its memory from time to time instead
    /// of counting requests ([`crate::Pressures`]). The store must come from such a machine, because demands have
    /// another unit there.
    ///
    /// `undisturbed` are readings that were taken before any program began.
    pub fn probed(store: Store, learning: Learning, undisturbed: &[Reading]) -> Learned {
        let mut probed = Probed::default();
        probed.add(undisturbed, |_| None);
        let today = Today::after(undisturbed);
        Learned { probed: Some(probed), today, ..Learned::new(store, learning) }
    }

    /// The store with all that has been learned.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the store, to be kept for the next time.
    pub fn into_store(mut self) -> Store {
        if let Some(probed) = &self.probed {
            for (build, found) in probed.pressures() {
                if let Some(program) = self.store.programs.get_mut(build) {
                    program.pressure = Some(program.pressure.map_or(found, |before| before.with(found)));
                }
            }
        }
        self.store
    }

    /// The number of quanta in each of the three states and in none, by build, since this value was made.
    pub fn states(&self) -> &BTreeMap<String, BTreeMap<Option<Little>, u64>> {
        &self.states
    }

    /// Opens and closes the gate of coverage of a program that runs.
    fn cover(&mut self, build: &str) {
        let Some(program) = self.store.programs.get(build) else { return };
        // One whose programs were chosen in an earlier session was covered then.
        let was_covered =
            self.covered.contains(build) || program.inputs.values().any(|input| input.times.chosen.count > 0);
        let least = if was_covered { COVERAGE_KEPT } else { COVERAGE_MIN };
        if program.phases.coverage_with_neighbours() < least {
            self.covered.remove(build);
        } else if !self.covered.contains(build) {
            self.covered.insert(build.to_owned());
        }
    }

    fn learn_of(&mut self, ran: &Ran, state: Option<Little>, is_busy: bool, quantum_us: f64) {
        let Some(execution) = self.executions.get_mut(&ran.id) else { return };
        let is_probed = self.probed.is_some();
        // Without counters, work is processor time.
        let work = is_probed.then_some(Counts { instructions: ran.processor_us, requests: 0.0 });
        let program = self.store.programs.entry(execution.key.build.clone()).or_default();
        let with = (&mut *program, &self.learning);
        let piece = execution.take_in(ran, ran.counts.or(work), self.order, quantum_us, with);
        if is_probed && let Some(demand) = program.phases.mean_demand() {
            // A new phase of a program that is known.
            program.phases.set_missing_demands(demand);
        }
        let Some(PhasePiece { phase, ran_us, counts, is_sample }) = piece.filter(|_| !is_probed) else { return };
        if is_sample {
            let (rate, bandwidth) = (counts.instructions / ran_us, counts.requests / ran_us);
            let enough = |phase: &Phase| phase.rate.valid && phase.rate.samples >= SAMPLES_ENOUGH;
            if !(is_busy && program.phases.get(phase).is_some_and(enough)) {
                program.phases.update(phase, rate, bandwidth, state.is_some());
            }
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
        if self.probed.is_none() {
            return;
        }
        for reading in &quantum.readings {
            let used = reading.used.iter().filter(|(_, processors)| processors.round() > 0.0);
            let demands = used.map(|(id, processors)| Some(self.demand(*id)? * processors.round()));
            if let Some(demand) = demands.sum::<Option<f64>>() {
                self.today.add(demand, reading.took_us);
            }
        }
        let Some(probed) = &mut self.probed else { return };
        probed.add(&quantum.readings, |id| {
            let execution = self.executions.get(&id)?;
            Some((execution.key.build.clone(), execution.phase?))
        });
        if let Some((builds, phases)) = probed.demands() {
            self.store.take_demands(&builds, &phases);
        }
        let ids: Vec<ProgramId> = self.executions.keys().copied().collect();
        // A program that waits presses on nothing, known or not.
        let demand = |id: &ProgramId| self.demand(*id).or_else(|| quantum.waiting.contains(id).then_some(0.0));
        let demands: Option<Vec<f64>> = ids.iter().map(demand).collect();
        let (Some(demands), Some(share)) = (demands, self.today.share()) else { return };
        let demands: Vec<f64> = demands.into_iter().map(|demand| demand * share).collect();
        let losses: BTreeMap<_, _> = ids.into_iter().zip(avoidable(&demands, limits.processors)).collect();
        for ran in &quantum.ran {
            if let Some((execution, loss)) = self.executions.get_mut(&ran.id).zip(losses.get(&ran.id)) {
                let ran_us = ran.processor_us / execution.threads as f64;
                execution.progress = Some(Progress { ran_us, alone_us: ran_us * (1.0 - loss) });
            }
        }
    }

    /// The demand of a program's current phase, if it is known. Before the first quantum, it is that of its usual
    /// mixture.
    fn demand(&self, id: ProgramId) -> Option<f64> {
        let execution = self.executions.get(&id)?;
        let program = self.store.programs.get(&execution.key.build)?;
        match execution.phase {
            Some(phase) => program.phases.demand(phase),
            None => self.forecast(id).map(|forecast| forecast.demand),
        }
    }
}

impl Knowledge for Learned {
    fn begin(&mut self, arrival: &Arrival) {
        self.executions.insert(arrival.id, Execution::new(arrival));
        self.cover(&arrival.key.build);
    }

    fn recall(&mut self, kept: Store) {
        for (build, program) in kept.programs {
            match self.store.programs.get_mut(&build) {
                Some(known) => program.inputs.into_iter().for_each(|(name, input)| {
                    known.inputs.entry(name).or_insert(input);
                }),
                None => drop(self.store.programs.insert(build, program)),
            }
        }
        self.store.dropped.extend(kept.dropped);
    }

    fn decided(&mut self, order: Order) {
        self.order = order;
    }

    fn tally(&self) -> Tally {
        let keys: BTreeSet<&Key> = self.executions.values().map(|execution| &execution.key).collect();
        let input = |key: &&Key| self.store.programs.get(&key.build)?.inputs.get(&key.input);
        let inputs = || keys.iter().filter_map(input);
        let gain: Gain = inputs().filter_map(|input| input.times.gain()).sum();
        Tally {
            has_gained: gain.is_measured(),
            programs: inputs().count() as u64,
            all: inputs().map(|input| input.runs).sum(),
            tried: inputs().map(|input| input.times.tried).sum(),
        }
    }

    fn learn(&mut self, quantum: &Quantum, limits: &Limits) {
        let requests = |ran: &Ran| ran.counts.map_or(0.0, |counts| counts.requests);
        let own = |ran: &Ran| {
            let threads = self.executions.get(&ran.id).map_or(1, |execution| execution.threads);
            requests(ran) / (ran.processor_us / threads as f64).clamp(1.0, quantum.length_us.max(1.0))
        };
        let own: Vec<f64> = quantum.ran.iter().map(own).collect();
        let foreign = quantum.foreign_requests / quantum.length_us;
        let system = quantum.ran.iter().map(requests).sum::<f64>() / quantum.length_us + foreign;
        let is_busy = system >= SYSTEM_LOW * limits.peak;
        let states = states(&own, system, foreign, limits.peak);
        for (ran, state) in quantum.ran.iter().zip(states) {
            self.learn_of(ran, state, is_busy, quantum.length_us);
        }
        self.learn_from_readings(quantum, limits);
        let builds: BTreeSet<String> = self.executions.values().map(|execution| execution.key.build.clone()).collect();
        builds.iter().for_each(|build| self.cover(build));
    }

    fn end(&mut self, id: ProgramId, whole: bool) {
        if let Some(execution) = self.executions.remove(&id) {
            execution.end(&mut self.store, whole);
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
        if !self.covered.contains(&execution.key.build) {
            return None;
        }
        // At the start the phase is unknown, and later it may be one that was never seen alone, without a neighbour.
        // Then the program's mean is used.
        let mean = if whole.alone_us > 0.0 { whole.requests / whole.alone_us } else { 0.0 };
        let earlier = self.learning.earlier_transitions.then_some(program);
        let next = execution.next_phase(earlier).and_then(|place| program.phases.demand(place));
        let left = ProgramWork {
            alone_us: (whole.alone_us - alone_us(&execution.instructions, &program.phases)).max(0.0),
            requests: (whole.requests - requests).max(0.0),
            ..whole
        };
        Some(Forecast { demand: next.unwrap_or(mean), whole, left })
    }

    fn progress(&self, id: ProgramId) -> Option<Progress> {
        self.executions.get(&id)?.progress
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::know::blocks::BlockVector;
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

    /// A program that asks for little is valid beside others that fill the memory, and still loses a percent. The
    /// accuracy of its time fell from execution to execution.
    #[test]
    fn a_phase_with_enough_samples_takes_only_those_of_quiet_quanta() {
        let mut learned = learned();
        (1..=3).for_each(|id| learned.begin(&arrival(id, ["", "a", "b", "c"][id as usize])));
        let rate = |learned: &Learned| learned.store.programs["a"].phases.get(0).map_or(0.0, |phase| phase.rate.mean);
        let beside = |learned: &mut Learned, rate: f64, others: f64| {
            let all = vec![ran(1, rate, 1.0, 0), ran(2, 500.0, others, 0), ran(3, 500.0, others, 0)];
            learned.learn(&quantum(all), &LIMITS);
        };
        (0..8).for_each(|_| beside(&mut learned, 1000.0, 50.0));
        (0..8).for_each(|_| beside(&mut learned, 980.0, 50.0));
        assert_eq!(rate(&learned), 1000.0);
        beside(&mut learned, 1009.0, 1.0);
        assert!((rate(&learned) - 1001.0).abs() < 1e-9);
    }

    #[test]
    fn a_program_below_80_percent_of_coverage_has_no_forecast() {
        let mut learned = learned();
        for turn in 0..2 {
            learned.begin(&arrival(turn, "a"));
            learned.begin(&arrival(10 + turn, "b"));
            // A quarter of its quanta was never seen without contention.
            learned.learn(&quantum(vec![ran(turn, 500.0, 40.0, 640), ran(10 + turn, 500.0, 40.0, 0)]), &LIMITS);
            for _ in 0..3 {
                learned.learn(&quantum(vec![ran(turn, 1000.0, 60.0, 0)]), &LIMITS);
            }
            assert_eq!(learned.forecast(ProgramId(turn)), None);
            learned.end(ProgramId(turn), true);
        }
        assert_eq!(learned.store.coverage("a"), 0.75);
        learned.begin(&arrival(2, "a"));
        learned.learn(&quantum(vec![ran(2, 800.0, 60.0, 640)]), &LIMITS);
        assert_eq!(learned.store.coverage("a"), 1.0);
        assert!(learned.forecast(ProgramId(2)).is_some());
    }

    /// One new phase pushed a program below 80 %, and the choice of all programs went back to the system.
    #[test]
    fn a_program_that_was_covered_is_known_down_to_60_percent() {
        let mut learned = learned();
        learned.begin(&arrival(0, "a"));
        for _ in 0..6 {
            learned.learn(&quantum(vec![ran(0, 1000.0, 60.0, 0)]), &LIMITS);
        }
        learned.end(ProgramId(0), true);
        learned.begin(&arrival(1, "a"));
        learned.begin(&arrival(2, "b"));
        // Other code in each quantum, always beside a program that asks for much: 6 of 7, 6 of 8, ... are known.
        let is_still_known = |learned: &mut Learned, number: u64| {
            let new = ran(1, 500.0, 40.0, 6400 * number);
            learned.learn(&quantum(vec![new, ran(2, 500.0, 40.0, 0)]), &LIMITS);
            learned.forecast(ProgramId(1)).is_some()
        };
        let known: Vec<bool> = (1..=5).map(|number| is_still_known(&mut learned, number)).collect();
        assert_eq!(known, [true, true, true, true, false]);
        // Once closed, the gate opens at 80 %, also for the next session.
        let mut next = Learned::new(learned.store.clone(), Learning::default());
        next.begin(&arrival(3, "a"));
        assert_eq!(next.forecast(ProgramId(3)), None);
        // A program that was chosen in an earlier session was covered then.
        for (was_chosen, is_known) in [(false, false), (true, true)] {
            let mut store = learned.store.clone();
            let program = store.programs.get_mut("a").expect("it has run");
            program.phases = Default::default();
            for place in 0..10 {
                let vector = BlockVector::of(&[if place < 7 { 0 } else { 6400 }]);
                let phase = program.phases.recognise(&vector, &Default::default());
                program.phases.update(phase, 1000.0, 60.0, place < 7);
            }
            if was_chosen {
                program.inputs.get_mut("i").expect("it has run").times.chosen.take_in(1000.0);
            }
            let mut next = Learned::new(store, Learning::default());
            next.begin(&arrival(3, "a"));
            assert_eq!(next.forecast(ProgramId(3)).is_some(), is_known);
        }
    }

    /// In a contended quantum a new phase is unknown, and its bandwidth too small.
    #[test]
    fn the_forecast_of_a_phase_that_was_never_seen_alone_is_that_of_its_neighbour_or_of_the_program() {
        for (addresses, demand) in [([vec![0; 70], vec![640; 30]].concat(), 60.0), (vec![6400; 100], 60.0 * 0.9)] {
            let mut learned = learned();
            learned.begin(&arrival(0, "a"));
            (0..9).for_each(|_| learned.learn(&quantum(vec![ran(0, 1000.0, 60.0, 0)]), &LIMITS));
            learned.learn(&quantum(vec![ran(0, 1000.0, 0.0, 64_000)]), &LIMITS);
            learned.end(ProgramId(0), true);
            learned.begin(&arrival(1, "a"));
            learned.begin(&arrival(2, "b"));
            let new = Ran { addresses, ..ran(1, 500.0, 30.0, 0) };
            learned.learn(&quantum(vec![new, ran(2, 500.0, 40.0, 0)]), &LIMITS);
            assert_eq!(learned.forecast(ProgramId(1)).map(|forecast| forecast.demand), Some(demand));
        }
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

    /// Runs programs 1 and 2 for some quanta on two processors. A reading beside program 1 takes twice as long, beside
    /// program 2 as ever.
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

    /// Real programs have new phases in each execution. They counted as unknown until demands were computed again,
    /// which was often after the end.
    #[test]
    fn a_new_phase_of_a_known_program_has_its_mean_demand() {
        let undisturbed = vec![Reading { took_us: 10.0, used: vec![] }; 8];
        let mut learned = Learned::probed(Store::default(), Learning::default(), &undisturbed);
        (1..=2).for_each(|id| learned.begin(&arrival(id, if id == 1 { "a" } else { "b" })));
        read_beside(&mut learned, 10);
        assert_eq!(learned.store.coverage("a"), 1.0);
        for address in 100..104 {
            learned.learn(&quantum(vec![Ran { counts: None, ..ran(1, 0.0, 0.0, address * 64) }]), &LIMITS);
        }
        assert_eq!((learned.store.programs["a"].phases.len(), learned.store.coverage("a")), (5, 1.0));
        assert_eq!(learned.demand(ProgramId(1)), Some(1.0));
    }

    /// Runs program 1 once, for ten quanta, in the system's order or chosen.
    fn run_once(learned: &mut Learned, is_chosen: bool, processor_us: f64) {
        learned.begin(&arrival(1, "a"));
        for _ in 0..10 {
            learned.decided(Order { is_chosen, is_tried: is_chosen });
            let part = Ran { counts: None, processor_us, ..ran(1, 0.0, 0.0, 0) };
            learned.learn(&quantum(vec![part]), &LIMITS);
        }
        learned.end(ProgramId(1), true);
    }

    /// Returns what is known of both orders of program 1.
    fn tally(learned: &mut Learned) -> Tally {
        learned.begin(&arrival(1, "a"));
        let tally = learned.tally();
        learned.end(ProgramId(1), false);
        tally
    }

    #[test]
    fn a_gain_is_measured_by_whole_executions_in_both_orders() {
        for (chosen_us, has_gained) in [(980.0, true), (995.0, false), (1100.0, false)] {
            let mut learned = Learned::probed(Store::default(), Learning::default(), &[]);
            for turn in 0..3 {
                run_once(&mut learned, false, 1000.0);
                assert_eq!(
                    tally(&mut learned),
                    Tally { has_gained: false, programs: 1, all: 2 * turn + 1, tried: turn }
                );
                run_once(&mut learned, true, chosen_us);
            }
            assert_eq!(tally(&mut learned), Tally { has_gained, programs: 1, all: 6, tried: 3 }, "{chosen_us}");
            // A mixture of both orders does not count.
            let before = learned.store.programs["a"].inputs["i"].times;
            learned.begin(&arrival(1, "a"));
            for is_chosen in [false, true] {
                learned.decided(Order { is_chosen, is_tried: is_chosen });
                learned.learn(&quantum(vec![Ran { counts: None, ..ran(1, 0.0, 0.0, 0) }]), &LIMITS);
            }
            learned.end(ProgramId(1), true);
            let after = learned.store.programs["a"].inputs["i"].times;
            assert_eq!((after.usual, after.chosen, after.tried), (before.usual, before.chosen, before.tried + 1));
        }
    }

    #[test]
    fn what_is_recalled_of_a_program_does_not_replace_what_was_seen_since() {
        let mut learned = Learned::probed(Store::default(), Learning::default(), &[]);
        run_once(&mut learned, false, 1000.0);
        let mut kept = learned.store.clone();
        let program = kept.programs.get_mut("a").expect("it ran");
        program.phases = Default::default();
        let input = program.inputs.remove("i").expect("it ran");
        program.inputs.insert("j".into(), input);
        kept.dropped.insert(("a".into(), "b".into()));
        let before = learned.store.programs["a"].clone();
        learned.recall(kept.clone());
        let after = &learned.store.programs["a"];
        assert_eq!((&after.phases, &after.inputs["i"]), (&before.phases, &before.inputs["i"]));
        assert_eq!((&after.inputs["j"], &learned.store.dropped), (&kept.programs["a"].inputs["j"], &kept.dropped));
    }

    #[test]
    fn an_execution_that_has_not_left_its_phase_yet_follows_earlier_ones() {
        for (earlier_transitions, demand) in [(true, 10.0), (false, 60.0)] {
            let mut learned = Learned::new(Store::default(), Learning { earlier_transitions, ..Learning::default() });
            learned.begin(&arrival(0, "a"));
            for (address, bandwidth) in [(0, 60.0), (640, 10.0)] {
                learned.learn(&quantum(vec![ran(0, 1000.0, bandwidth, address)]), &LIMITS);
            }
            learned.end(ProgramId(0), true);
            learned.begin(&arrival(1, "a"));
            learned.learn(&quantum(vec![ran(1, 1000.0, 60.0, 0)]), &LIMITS);
            assert_eq!(learned.forecast(ProgramId(1)).map(|forecast| forecast.demand), Some(demand));
        }
    }

    /// Demands of an earlier session open the gate only while today's readings show them.
    #[test]
    fn demands_that_readings_do_not_show_today_cost_nobody_anything() {
        for (pressed_us, is_lost) in [(20.0, true), (10.5, false)] {
            let undisturbed = vec![Reading { took_us: 10.0, used: vec![] }; 8];
            let mut learned = Learned::probed(Store::default(), Learning::default(), &undisturbed);
            for turn in 0..2 {
                let builds = [(1, "a"), (2, "b"), (3, "a"), (4, "b")];
                builds.iter().for_each(|(id, build)| learned.begin(&arrival(*id, build)));
                read_beside(&mut learned, 10);
                if turn == 0 {
                    (1..=4).for_each(|id| learned.end(ProgramId(id), true));
                    learned = Learned::probed(learned.store, Learning::default(), &undisturbed);
                }
                learned.today = Today::default();
            }
            for _ in 0..4 {
                learned.today.add(0.0, 10.0);
                learned.today.add(1.0, pressed_us);
            }
            let all = (1..=4).map(|id| Ran { counts: None, ..ran(id, 0.0, 0.0, u64::from(2 - id % 2) * 640) });
            learned.learn(&quantum(all.collect()), &LIMITS);
            let lost = learned.progress(ProgramId(1)).map(|progress| progress.loss());
            assert_eq!(lost.is_some_and(|lost| lost > 0.05), is_lost, "{pressed_us}: {lost:?}");
        }
    }
}
