//! The scheduler: decides before a quantum, learns after it.
//!
//! A decision has these steps. Each of steps 2 to 4 may end it with "as the system does":
//!
//! 1. begin the programs whose memory fits;
//! 2. stop if all programs that could run have a processor: there is nothing to choose;
//! 3. stop if too little is known of any program (the gate of coverage);
//! 4. stop if the machine shows no contention, or it is the turn of the system's order;
//! 5. compute the target: the average bandwidth that the group demands;
//! 6. select programs that come near to it together.

use std::collections::{BTreeMap, BTreeSet};

use crate::decide::beyond::admission::Admission;
use crate::decide::beyond::gate::Gate;
use crate::decide::beyond::pairings::{Member, Pairings};
use crate::decide::beyond::settings::Settings;
use crate::decide::beyond::trial::Turn;
use crate::decide::ideal::{ideal_average_bandwidth, ideal_time_us};
use crate::decide::select::{Candidate, select};
use crate::know::knowledge::{Forecast, Knowledge, Order};
use crate::know::store::Store;
use crate::know::work::ProgramWork;
use crate::machine::{Arrival, Choice, Decision, Key, Limits, Machine, ProgramId, Quantum};

/// The smallest share of a processor that a program takes, even if it waits all the time.
const PROCESSORS_MIN: f64 = 0.1;
/// The number of quanta with samples after a program has begun, so that its first phase is recognised.
const FIRST_QUANTA: u64 = 2;
/// The weight of the last quantum in the share that a program uses of its processors.
const USE_WEIGHT: f64 = 0.25;

/// The reason for the last decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// No decision yet.
    #[default]
    Start,
    /// Every program that could run has a processor.
    NothingToChoose,
    /// Too little is known of a program.
    NotCovered,
    /// The machine shows no contention.
    NoContention,
    /// No gain of choosing these programs was measured, and it is not the turn to try it.
    NoGain,
    /// So little is left to do that programs chosen for whole quanta would end too unevenly.
    Finishing,
    /// The programs were chosen by their demands.
    Chosen,
}

/// The cost of decisions, in counted steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// The number of decisions in which programs were chosen.
    pub selections: u64,
    /// The number of programs examined in them.
    pub looks: u64,
    /// The largest number in one decision.
    pub looks_max: u64,
}

/// Decides which programs run together.
#[derive(Debug)]
pub struct Scheduler<K> {
    knowledge: K,
    settings: Settings,
    admission: Admission<Arrival>,
    /// The programs that have begun.
    programs: BTreeMap<ProgramId, Scheduled>,
    quantum: u64,
    /// The quantum in which the last program began.
    last_began: u64,
    /// The target of the group; `None` if it must be computed.
    target: Option<f64>,
    gate: Option<Gate>,
    /// `None` until all programs are known.
    turn: Option<Turn>,
    pairings: Option<Pairings>,
    /// The numbers of builds.
    builds: BTreeMap<String, usize>,
    reason: Reason,
    /// The number of decisions for each reason.
    reasons: BTreeMap<Reason, u64>,
    /// The demands in the last decision did not exceed the target.
    is_balanced: bool,
    /// The last decision chose more threads than there are processors, because they wait at times.
    is_crowded: bool,
    cost: Cost,
}

#[derive(Debug)]
struct Scheduled {
    build: usize,
    threads: usize,
    memory_bytes: u64,
    last_ran: u64,
    /// It waits for input or output.
    is_waiting: bool,
    /// The share of its processors that it uses when it runs.
    used: f64,
}

impl<K: Knowledge> Scheduler<K> {
    /// Makes a scheduler without programs.
    pub fn new(knowledge: K, settings: Settings) -> Scheduler<K> {
        Scheduler {
            knowledge,
            admission: Admission::default(),
            programs: BTreeMap::new(),
            quantum: 0,
            last_began: 0,
            target: None,
            gate: settings.gate.map(Gate::new),
            turn: None,
            pairings: settings.pairings.then(Pairings::default),
            builds: BTreeMap::new(),
            reason: Reason::Start,
            reasons: BTreeMap::new(),
            is_balanced: false,
            is_crowded: false,
            cost: Cost::default(),
            settings,
        }
    }

    /// The knowledge.
    pub fn knowledge(&self) -> &K {
        &self.knowledge
    }

    /// Returns the knowledge at the end.
    pub fn into_knowledge(self) -> K {
        self.knowledge
    }

    /// The reason for the last decision.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// The number of decisions for each reason.
    pub fn reasons(&self) -> &BTreeMap<Reason, u64> {
        &self.reasons
    }

    /// The cost of all decisions.
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// Drops a pair of builds that was found to be wrong in an earlier session.
    pub fn drop_pair(&mut self, one: &str, other: &str) {
        let [one, other] = [one, other].map(|build| self.number(build));
        if let Some(pairings) = &mut self.pairings {
            pairings.drop_pair(one, other);
        }
    }

    /// Returns the dropped pairs of builds, to be kept in a store.
    pub fn dropped(&self) -> BTreeSet<(String, String)> {
        let names: BTreeMap<usize, &String> = self.builds.iter().map(|(name, number)| (*number, name)).collect();
        let pairs = self.pairings.iter().flat_map(Pairings::dropped);
        pairs
            .map(|(one, other)| {
                let (one, other) = (names[&one].clone(), names[&other].clone());
                if one <= other { (one, other) } else { (other, one) }
            })
            .collect()
    }

    /// Decides the next quantum.
    pub fn decide(&mut self, limits: &Limits) -> Decision {
        self.quantum += 1;
        // 1. Programs begin.
        let capacity = if self.settings.memory { limits.memory_bytes } else { u64::MAX };
        let mut begin = Vec::new();
        for arrival in self.admission.begin(capacity) {
            self.begin(&arrival);
            begin.push(arrival.id);
        }
        let (reason, run) = match self.choose(limits) {
            Ok(chosen) => (Reason::Chosen, Choice::Only(chosen)),
            Err(reason) => (reason, Choice::System),
        };
        self.knowledge.decided(Order { is_chosen: reason == Reason::Chosen, is_tried: self.is_turn() });
        self.reason = reason;
        *self.reasons.entry(reason).or_default() += 1;
        let sample =
            self.quantum < self.last_began + FIRST_QUANTA || self.quantum.is_multiple_of(self.settings.sample_every);
        Decision { begin, run, sample }
    }

    /// Steps 2 to 6. An error gives the reason for keeping the system's order.
    fn choose(&mut self, limits: &Limits) -> Result<Vec<ProgramId>, Reason> {
        // 2. Some program must stand still.
        let slots = self.slots(limits);
        let ready = || self.programs.iter().filter(|(_, program)| !(self.settings.waits && program.is_waiting));
        let wanted: f64 = ready().map(|(_, program)| self.processors(program)).sum();
        if wanted <= slots {
            return Err(Reason::NothingToChoose);
        }
        // 3. Enough is known of all that do not wait.
        let forecast = |(id, program): (&ProgramId, &Scheduled)| match self.knowledge.forecast(*id) {
            None if self.settings.waits && program.is_waiting => None,
            forecast => Some(forecast.map(|forecast| (*id, forecast))),
        };
        let forecasts: BTreeMap<ProgramId, Forecast> =
            self.programs.iter().filter_map(forecast).collect::<Option<_>>().ok_or(Reason::NotCovered)?;
        // 4. There is contention, and it is the turn of our order.
        if let (Some(rule), None) = (&self.settings.trial, self.turn) {
            self.turn = Some(Turn { is_ours: rule.is_ours(&self.knowledge.tally()), left_us: rule.turn_us });
        }
        if self.gate.as_ref().is_some_and(|gate| !gate.is_open()) {
            return Err(Reason::NoContention);
        }
        if self.settings.trial.is_some() && !self.is_turn() {
            return Err(Reason::NoGain);
        }
        // 5. The target.
        let target = match self.target.filter(|_| !self.settings.target_of_the_rest) {
            Some(target) => target,
            None => {
                let work = |forecast: &Forecast| match self.settings.target_of_the_rest {
                    true => forecast.left,
                    false => forecast.whole,
                };
                let works: Vec<ProgramWork> = forecasts.values().map(work).collect();
                self.knowledge.target(ideal_average_bandwidth(&works, slots.max(1.0) as usize))
            }
        };
        // 6. The selection.
        let left: Vec<ProgramWork> = forecasts.values().map(|forecast| forecast.left).collect();
        let ideal_us = ideal_time_us(&left, slots.max(1.0) as usize);
        if self.settings.finish.is_some_and(|quanta| ideal_us < quanta * self.settings.quantum_us) {
            return Err(Reason::Finishing);
        }
        let late = self.settings.late;
        let is_late = |left: &ProgramWork| late.is_some_and(|share| left.alone_us * (1.0 + share) > ideal_us);
        let (ids, candidates): (Vec<ProgramId>, Vec<Candidate>) = ready()
            .map(|(id, program)| {
                let processors = self.processors(program);
                // Without the rule for waits, a program is assumed to use all the time it is given.
                let used = if self.settings.waits { program.used } else { 1.0 };
                let Forecast { demand, left, .. } = &forecasts[id];
                let (demand, is_late) = (demand * used, is_late(left));
                (*id, Candidate { demand, processors, last_ran: program.last_ran, is_late })
            })
            .unzip();
        let builds: Vec<usize> = ids.iter().map(|id| self.programs[id].build).collect();
        let pairings = self.pairings.as_ref().filter(|pairings| !pairings.is_empty());
        let conflict =
            pairings.map(|pairings| |one: usize, other: usize| pairings.is_dropped(builds[one], builds[other]));
        let conflict = conflict.as_ref().map(|conflict| conflict as &dyn Fn(usize, usize) -> bool);
        let mut looks = 0;
        let chosen = select(&candidates, slots, target, conflict, &mut looks);
        self.target = Some(target);
        let threads: usize = chosen.iter().map(|place| self.programs[&ids[*place]].threads).sum();
        self.is_crowded = threads as f64 > slots;
        self.is_balanced = chosen.iter().map(|place| candidates[*place].demand).sum::<f64>() <= target;
        self.cost.selections += 1;
        self.cost.looks += looks;
        self.cost.looks_max = self.cost.looks_max.max(looks);
        // A program that waits is not stopped: it could not tell when it no longer waits.
        let waiting = self.programs.iter().filter(|(_, program)| self.settings.waits && program.is_waiting);
        Ok(chosen.into_iter().map(|place| ids[place]).chain(waiting.map(|(id, _)| *id)).collect())
    }

    /// Returns whether the programs are chosen now if the other rules allow it, and not only observed.
    fn is_turn(&self) -> bool {
        self.settings.trial.is_none() || self.turn.is_some_and(|turn| turn.is_ours)
    }

    /// Returns the length of the next quantum, in microseconds. Quanta in which nothing can be chosen are longer.
    pub fn quantum_us(&self) -> f64 {
        let rule = self.settings.trial.filter(|_| !self.is_turn());
        self.settings.quantum_us * rule.map_or(1.0, |rule| rule.observed_quanta)
    }

    /// Takes in what was kept of a program from earlier sessions.
    pub fn recall(&mut self, kept: Store) {
        kept.dropped.iter().for_each(|(one, other)| self.drop_pair(one, other));
        self.knowledge.recall(kept);
    }

    /// Learns from the quantum that was decided last.
    pub fn learn(&mut self, quantum: &Quantum, limits: &Limits) {
        self.knowledge.learn(quantum, limits);
        self.turn = self.turn.map(|turn| Turn { left_us: turn.left_us - quantum.length_us, ..turn });
        self.turn = self.turn.filter(|turn| turn.left_us > 0.0);
        let is_ours = self.reason == Reason::Chosen;
        let (mut lost_us, mut ran_us, mut members) = (0.0, 0.0, Vec::new());
        for program in self.programs.values_mut() {
            program.is_waiting = false;
        }
        for ran in &quantum.ran {
            let Some(program) = self.programs.get_mut(&ran.id) else { continue };
            program.last_ran = self.quantum;
            if is_ours {
                let used = (ran.processor_us / (quantum.length_us * program.threads as f64)).min(1.0);
                // If more threads than processors were chosen, a program may use less than it could, but not more.
                if !self.is_crowded || used > program.used {
                    program.used += (used - program.used) * USE_WEIGHT;
                }
            }
            let progress = self.knowledge.progress(ran.id);
            if let Some(progress) = progress {
                ran_us += progress.ran_us;
                lost_us += progress.ran_us - progress.alone_us;
            }
            let used = ran.counts.map_or(0.0, |counts| counts.requests / quantum.length_us);
            members.push(Member { build: program.build, loss: progress.map(|progress| progress.loss()), used });
        }
        for id in &quantum.waiting {
            if let Some(program) = self.programs.get_mut(id) {
                program.is_waiting = true;
                // It could have run.
                program.last_ran = self.quantum;
            }
        }
        if let Some(gate) = &mut self.gate {
            gate.observe(lost_us, ran_us);
        }
        if let Some(pairings) = &mut self.pairings {
            if !is_ours {
                let known = members.iter().filter_map(|member| Some((member.build, member.loss?)));
                known.for_each(|(build, loss)| pairings.observe_usual(build, loss));
            } else if self.is_balanced {
                pairings.observe_chosen(&members);
            }
        }
        for ended in &quantum.ended {
            match self.programs.remove(&ended.id) {
                Some(program) => {
                    self.admission.end(program.memory_bytes);
                    self.knowledge.end(ended.id, ended.whole);
                }
                None => self.admission.cancel(|arrival| arrival.id == ended.id),
            }
        }
        for arrival in &quantum.arrived {
            self.admission.arrive(arrival.clone(), arrival.memory_bytes);
        }
    }

    fn begin(&mut self, arrival: &Arrival) {
        self.knowledge.begin(arrival);
        let program = Scheduled {
            build: self.number(&arrival.key.build),
            threads: if self.settings.threads { arrival.threads.max(1) } else { 1 },
            memory_bytes: arrival.memory_bytes,
            // It queues after those that already run.
            last_ran: self.quantum.saturating_sub(1),
            is_waiting: false,
            used: 1.0,
        };
        self.programs.insert(arrival.id, program);
        self.last_began = self.quantum;
        if self.settings.arrivals_join {
            self.target = None;
        }
    }

    fn number(&mut self, build: &str) -> usize {
        let next = self.builds.len();
        *self.builds.entry(build.to_owned()).or_insert(next)
    }

    /// Returns the number of processors to share out.
    fn slots(&self, limits: &Limits) -> f64 {
        let quota = if self.settings.quota { limits.quota } else { f64::INFINITY };
        quota.min(limits.processors as f64).max(PROCESSORS_MIN)
    }

    /// Returns the number of processors that a program keeps busy.
    fn processors(&self, program: &Scheduled) -> f64 {
        let used = if self.settings.waits { program.used } else { 1.0 };
        (program.threads as f64 * used).max(PROCESSORS_MIN)
    }
}

/// Runs programs until none is left: decide, run, learn. When a program arrives, `kept` returns what was kept of it
/// from earlier sessions, so that nothing is read of others.
pub fn drive<M: Machine, K: Knowledge>(
    machine: &mut M,
    scheduler: &mut Scheduler<K>,
    mut kept: impl FnMut(&mut M, &Key) -> Option<Store>,
) -> Result<(), M::Error> {
    loop {
        let limits = machine.limits();
        let decision = scheduler.decide(&limits);
        let Some(quantum) = machine.run(&decision, scheduler.quantum_us())? else { return Ok(()) };
        for arrival in &quantum.arrived {
            if let Some(kept) = kept(machine, &arrival.key) {
                scheduler.recall(kept);
            }
        }
        scheduler.learn(&quantum, &limits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::beyond::gate::GateRule;
    use crate::decide::beyond::trial::TrialRule;
    use crate::know::knowledge::{Progress, Tally};
    use crate::machine::{Counts, Ended, Ran};
    use proptest::prelude::*;

    /// Knowledge that the test provides.
    #[derive(Default)]
    struct Told {
        forecasts: BTreeMap<u32, Forecast>,
        losses: BTreeMap<u32, f64>,
        tally: Tally,
        orders: Vec<Order>,
    }

    impl Knowledge for Told {
        fn decided(&mut self, order: Order) {
            self.orders.push(order);
        }
        fn tally(&self) -> Tally {
            self.tally
        }
        fn begin(&mut self, _: &Arrival) {}
        fn learn(&mut self, _: &Quantum, _: &Limits) {}
        fn end(&mut self, _: ProgramId, _: bool) {}
        fn forecast(&self, id: ProgramId) -> Option<Forecast> {
            self.forecasts.get(&id.0).copied()
        }
        fn progress(&self, id: ProgramId) -> Option<Progress> {
            self.losses.get(&id.0).map(|loss| Progress { ran_us: 100.0, alone_us: 100.0 * (1.0 - loss) })
        }
    }

    const LIMITS: Limits = Limits { processors: 2, quota: f64::INFINITY, memory_bytes: 100, peak: 120.0 };

    fn arrival(id: u32, threads: usize, memory_bytes: u64) -> Arrival {
        let key = Key { build: format!("build {id}"), input: "i".into() };
        Arrival { id: ProgramId(id), key, threads, memory_bytes }
    }

    fn known(demand: f64, left: f64) -> Forecast {
        let whole = ProgramWork { alone_us: 100.0, requests: 100.0 * demand, threads: 1 };
        let left = ProgramWork { alone_us: 100.0 * left, requests: 100.0 * demand * left, threads: 1 };
        Forecast { demand, whole, left }
    }

    /// Makes a scheduler of programs 0, 1, ... with these demands, all of which have begun.
    fn scheduler(demands: &[f64], settings: Settings) -> Scheduler<Told> {
        let arrivals: Vec<Arrival> = (0..demands.len()).map(|id| arrival(id as u32, 1, 0)).collect();
        let forecasts = demands.iter().enumerate().map(|(id, demand)| (id as u32, known(*demand, 1.0))).collect();
        let mut scheduler = Scheduler::new(Told { forecasts, ..Told::default() }, settings);
        scheduler.learn(&Quantum { arrived: arrivals, ..Quantum::default() }, &LIMITS);
        scheduler
    }

    fn ran(id: u32, processor_us: f64, requests: f64) -> Ran {
        let counts = Some(Counts { instructions: 1.0, requests });
        Ran { id: ProgramId(id), processor_us, counts, addresses: Vec::new() }
    }

    fn quantum(ran: Vec<Ran>) -> Quantum {
        Quantum { length_us: 100.0, ran, ..Quantum::default() }
    }

    fn chosen(decision: Decision) -> Vec<u32> {
        match decision.run {
            Choice::Only(ids) => ids.into_iter().map(|id| id.0).collect(),
            Choice::System => panic!("the system chooses"),
        }
    }

    #[test]
    fn some_quanta_have_samples_and_the_first_of_each_program() {
        let mut scheduler = scheduler(&[50.0, 40.0, 10.0], Settings { sample_every: 4, ..Settings::default() });
        let samples = |scheduler: &mut Scheduler<Told>, count: usize| -> Vec<bool> {
            let mut sample = || {
                let decision = scheduler.decide(&LIMITS);
                scheduler.learn(&quantum(vec![ran(0, 100.0, 0.0), ran(1, 100.0, 0.0)]), &LIMITS);
                decision.sample
            };
            (0..count).map(|_| sample()).collect()
        };
        assert_eq!(samples(&mut scheduler, 8), [true, true, false, true, false, false, false, true]);
        scheduler.learn(&Quantum { arrived: vec![arrival(7, 1, 0)], ..Quantum::default() }, &LIMITS);
        assert_eq!(samples(&mut scheduler, 4), [true, true, false, true]);
    }

    #[test]
    fn the_last_quanta_are_left_to_the_system() {
        for (finish, reason) in [(None, Reason::Chosen), (Some(10.0), Reason::Finishing)] {
            let mut scheduler = scheduler(&[50.0, 40.0, 10.0], Settings { finish, ..Settings::paper() });
            let ideal_us = 1.5 * scheduler.knowledge.forecasts[&0].left.alone_us;
            scheduler.settings.quantum_us = ideal_us / 9.0;
            scheduler.decide(&LIMITS);
            assert_eq!(scheduler.reason(), reason);
            scheduler.settings.quantum_us = ideal_us / 11.0;
            scheduler.decide(&LIMITS);
            assert_eq!(scheduler.reason(), Reason::Chosen);
        }
    }

    #[test]
    fn nothing_is_changed_before_every_program_is_covered() {
        let mut scheduler = scheduler(&[50.0, 40.0, 10.0], Settings::paper());
        let known = scheduler.knowledge.forecasts.remove(&1).expect("it is known");
        assert_eq!(scheduler.decide(&LIMITS).run, Choice::System);
        assert_eq!(scheduler.reason(), Reason::NotCovered);
        scheduler.knowledge.forecasts.insert(1, known);
        // The average is 100 * 3 / 1.5 of 100 / 3: 66.7. After 50, 16.7 are left.
        assert_eq!(chosen(scheduler.decide(&LIMITS)), [0, 2]);
    }

    #[test]
    fn nothing_is_changed_while_every_program_has_a_processor() {
        let mut scheduler = scheduler(&[50.0, 50.0], Settings::paper());
        assert_eq!(scheduler.decide(&LIMITS).run, Choice::System);
        assert_eq!(scheduler.reason(), Reason::NothingToChoose);
    }

    #[test]
    fn the_target_is_that_of_the_whole_group_or_of_the_remaining_work() {
        for (of_the_rest, expected) in [(false, [0, 1]), (true, [0, 2])] {
            let settings = Settings { target_of_the_rest: of_the_rest, ..Settings::paper() };
            let mut scheduler = scheduler(&[40.0, 32.0, 60.0, 4.0], settings);
            // The average of all is 68.
            assert_eq!(chosen(scheduler.decide(&LIMITS)), [0, 1]);
            scheduler.learn(&quantum(vec![]), &LIMITS);
            // The program with the small demand has ended but for its last quantum. The others demand 88 on average.
            scheduler.knowledge.forecasts.insert(3, known(4.0, 0.0));
            let next = chosen(scheduler.decide(&LIMITS));
            assert_eq!(next, expected, "{of_the_rest}");
        }
    }

    #[test]
    fn a_program_that_would_end_last_runs_at_any_demand() {
        for (late, expected) in [(Some(0.5), [0, 2]), (None, [0, 1])] {
            let mut scheduler = scheduler(&[30.0, 30.0, 90.0], Settings { late, ..Settings::paper() });
            // The first two have a tenth of their work left, the third all of it.
            for id in 0..2 {
                scheduler
                    .knowledge
                    .forecasts
                    .insert(id, Forecast { whole: known(30.0, 1.0).whole, ..known(30.0, 0.1) });
            }
            scheduler.knowledge.forecasts.insert(2, known(90.0, 1.0));
            scheduler.target = Some(60.0);
            assert_eq!(chosen(scheduler.decide(&LIMITS)), expected, "{late:?}");
        }
    }

    #[test]
    fn nothing_is_changed_without_contention() {
        let gate = GateRule { watch_quanta: 3, loss_min: 0.05, open_quanta: 100, follows: false };
        let mut scheduler = scheduler(&[50.0, 40.0, 10.0], Settings { gate: Some(gate), ..Settings::paper() });
        for turn in 0..10 {
            let loss = if turn < 5 { 0.0 } else { 0.5 };
            scheduler.knowledge.losses = BTreeMap::from([(0, loss), (1, loss)]);
            assert_eq!(scheduler.decide(&LIMITS).run == Choice::System, turn < 6, "{turn}");
            scheduler.learn(&quantum(vec![ran(0, 100.0, 1.0), ran(1, 100.0, 1.0)]), &LIMITS);
        }
    }

    /// `--by-bandwidth` cost 1 % on a machine where it gained nothing.
    #[test]
    fn programs_are_only_observed_unless_a_gain_was_measured_or_it_is_tried() {
        let trial = Some(TrialRule { one_in: 8, turn_us: 1000.0, observed_quanta: 4.0 });
        for (has_gained, all, tried, ours) in [
            (false, 0, 0, false),
            (false, 20, 2, false),
            (false, 24, 0, true),
            (true, 24, 20, true),
            (true, 64, 64, false),
        ] {
            let mut scheduler = scheduler(&[50.0, 40.0, 10.0], Settings { trial, ..Settings::paper() });
            scheduler.knowledge.tally = Tally { has_gained, programs: 3, all, tried };
            let case = format!("{has_gained} {tried} of {all}");
            assert_eq!(scheduler.decide(&LIMITS).run == Choice::System, !ours, "{case}");
            assert_eq!(scheduler.reason(), if ours { Reason::Chosen } else { Reason::NoGain }, "{case}");
            let usual_us = scheduler.settings.quantum_us;
            assert_eq!(scheduler.quantum_us(), if ours { usual_us } else { 4.0 * usual_us }, "{case}");
            assert_eq!(scheduler.knowledge.orders, [Order { is_chosen: ours, is_tried: ours }], "{case}");
        }
    }

    #[test]
    fn a_turn_holds_for_a_while_whatever_becomes_known_meanwhile() {
        let trial = Some(TrialRule { one_in: 8, turn_us: 350.0, observed_quanta: 4.0 });
        let mut scheduler = scheduler(&[50.0, 40.0, 10.0], Settings { trial, ..Settings::paper() });
        let mut turn = |has_gained: bool| {
            scheduler.knowledge.tally = Tally { has_gained, ..Tally::default() };
            let run = scheduler.decide(&LIMITS).run;
            scheduler.learn(&quantum(vec![ran(0, 100.0, 1.0)]), &LIMITS);
            run != Choice::System
        };
        // The first turn has four quanta of 100.
        assert_eq!([false, true, true, true, true, false].map(&mut turn), [false, false, false, false, true, true]);
    }

    #[test]
    fn a_pairing_found_wrong_twice_is_dropped_and_stored() {
        let mut scheduler = scheduler(&[50.0, 40.0, 10.0], Settings { pairings: true, ..Settings::paper() });
        // The system's order is kept while one program is unknown; no program loses anything.
        let known = scheduler.knowledge.forecasts.remove(&1).expect("it is known");
        scheduler.knowledge.losses = BTreeMap::from([(0, 0.0), (1, 0.0), (2, 0.0)]);
        for _ in 0..5 {
            assert_eq!(scheduler.decide(&LIMITS).run, Choice::System);
            scheduler.learn(&quantum(vec![ran(0, 60.0, 10.0), ran(1, 60.0, 10.0), ran(2, 60.0, 1.0)]), &LIMITS);
        }
        scheduler.knowledge.forecasts.insert(1, known);
        let mut pairs = Vec::new();
        for _ in 0..12 {
            let mut pair = chosen(scheduler.decide(&LIMITS));
            pair.sort_unstable();
            // 0 and 2 disturb each other unexpectedly.
            let loss = if pair == [0, 2] { 0.6 } else { 0.1 };
            scheduler.knowledge.losses = pair.iter().map(|id| (*id, loss)).collect();
            scheduler.learn(&quantum(pair.iter().map(|id| ran(*id, 100.0, 10.0)).collect()), &LIMITS);
            pairs.push(pair);
        }
        assert_eq!(pairs.iter().filter(|pair| **pair == [0, 2]).count(), 2, "{pairs:?}");
        assert_eq!(scheduler.dropped(), BTreeSet::from([("build 0".to_owned(), "build 2".to_owned())]));
    }

    #[test]
    fn programs_begin_when_their_memory_fits() {
        for (memory, expected) in [(true, vec![0, 1]), (false, vec![0, 1, 2])] {
            let mut scheduler = scheduler(&[], Settings { memory, ..Settings::paper() });
            let arrived = vec![arrival(0, 1, 50), arrival(1, 1, 50), arrival(2, 1, 50)];
            scheduler.learn(&Quantum { arrived, ..Quantum::default() }, &LIMITS);
            let begun = |decision: Decision| -> Vec<u32> { decision.begin.into_iter().map(|id| id.0).collect() };
            assert_eq!(begun(scheduler.decide(&LIMITS)), expected);
            let ended = vec![Ended { id: ProgramId(0), whole: true }];
            scheduler.learn(&Quantum { ended, length_us: 1.0, ..Quantum::default() }, &LIMITS);
            assert_eq!(begun(scheduler.decide(&LIMITS)).is_empty(), !memory);
        }
    }

    #[test]
    fn no_more_programs_run_than_the_quota_allows() {
        for (quota, count) in [(true, 1), (false, 2)] {
            let mut scheduler = scheduler(&[10.0, 20.0, 30.0], Settings { quota, ..Settings::paper() });
            let limits = Limits { quota: 1.0, ..LIMITS };
            assert_eq!(chosen(scheduler.decide(&limits)).len(), count);
        }
    }

    #[test]
    fn a_program_with_threads_takes_their_processors() {
        for (threads, count) in [(true, 1), (false, 2)] {
            let mut scheduler = scheduler(&[], Settings { threads, ..Settings::paper() });
            scheduler.knowledge.forecasts = (0..3).map(|id| (id, known(10.0, 1.0))).collect();
            let arrived = (0..3).map(|id| arrival(id, 2, 0)).collect();
            scheduler.learn(&Quantum { arrived, ..Quantum::default() }, &LIMITS);
            assert_eq!(chosen(scheduler.decide(&LIMITS)).len(), count);
        }
    }

    /// One that slept kept all others unknown, and one that was stopped while it waited could not tell when it no
    /// longer did.
    #[test]
    fn a_program_that_waits_need_not_be_known_and_is_not_stopped() {
        let mut scheduler = scheduler(&[50.0, 40.0, 10.0], Settings { gate: None, ..Settings::default() });
        scheduler.learn(&Quantum { arrived: vec![arrival(3, 1, 0)], ..quantum(vec![]) }, &LIMITS);
        scheduler.decide(&LIMITS);
        assert_eq!(scheduler.reason(), Reason::NotCovered);
        for _ in 0..4 {
            scheduler.learn(&Quantum { waiting: vec![ProgramId(3)], ..quantum(vec![]) }, &LIMITS);
            let ids = chosen(scheduler.decide(&LIMITS));
            assert!(ids.len() == 3 && ids.contains(&3), "{ids:?}");
        }
    }

    #[test]
    fn a_program_that_waits_leaves_its_processor_to_another() {
        for waits in [true, false] {
            let mut scheduler = scheduler(&[10.0, 10.0, 10.0, 10.0], Settings { waits, ..Settings::paper() });
            // Programs 0 and 1 use a fifth of the time they are given.
            for _ in 0..40 {
                let pair = chosen(scheduler.decide(&LIMITS));
                let used = |id: &u32| ran(*id, if *id < 2 { 20.0 } else { 100.0 }, 10.0);
                scheduler.learn(&quantum(pair.iter().map(used).collect()), &LIMITS);
            }
            let counts: Vec<usize> = (0..8)
                .map(|_| {
                    let ids = chosen(scheduler.decide(&LIMITS));
                    let used = |id: &u32| ran(*id, if *id < 2 { 20.0 } else { 100.0 }, 10.0);
                    scheduler.learn(&quantum(ids.iter().map(used).collect()), &LIMITS);
                    ids.len()
                })
                .collect();
            assert_eq!(counts.iter().any(|count| *count > 2), waits, "{counts:?}");
            // A waiting program is not chosen.
            let waiting = vec![ProgramId(0), ProgramId(3)];
            scheduler.learn(&Quantum { waiting, ..quantum(vec![]) }, &LIMITS);
            match scheduler.decide(&LIMITS).run {
                Choice::System => assert!(waits, "the two that are left have a processor each"),
                Choice::Only(ids) => assert!(!waits && ids.len() == 2),
            }
        }
    }

    #[test]
    fn programs_may_arrive_and_end_at_any_time() {
        for (arrivals_join, expected) in [(true, [0, 3]), (false, [0, 1])] {
            let mut scheduler = scheduler(&[30.0, 30.0, 30.0], Settings { arrivals_join, ..Settings::paper() });
            assert_eq!(chosen(scheduler.decide(&LIMITS)).len(), 2);
            scheduler.knowledge.forecasts.insert(3, known(90.0, 1.0));
            let arrived = vec![arrival(3, 1, 0)];
            let ended = vec![Ended { id: ProgramId(2), whole: true }];
            scheduler.learn(&Quantum { arrived, ended, ..quantum(vec![]) }, &LIMITS);
            // With the new program the target is 100 instead of 60.
            assert_eq!(chosen(scheduler.decide(&LIMITS)), expected, "{arrivals_join}");
        }
    }

    #[test]
    fn an_unknown_program_that_arrives_returns_the_choice_to_the_system() {
        let mut scheduler = scheduler(&[30.0, 30.0, 30.0], Settings { gate: None, ..Settings::default() });
        assert_eq!(chosen(scheduler.decide(&LIMITS)).len(), 2);
        scheduler.learn(&Quantum { arrived: vec![arrival(3, 1, 0)], ..quantum(vec![]) }, &LIMITS);
        assert_eq!(scheduler.decide(&LIMITS).run, Choice::System);
        let ended = vec![Ended { id: ProgramId(3), whole: true }];
        scheduler.learn(&Quantum { ended, ..quantum(vec![]) }, &LIMITS);
        assert_eq!(chosen(scheduler.decide(&LIMITS)).len(), 2);
    }

    proptest! {
        /// Any settings, and any demands, memory and waits of the programs.
        #[test]
        fn no_ready_program_waits_for_more_decisions_than_there_are_programs(
            programs in prop::collection::vec((0.0..100.0_f64, 1..3_usize, 0.0..1.0_f64, any::<bool>()), 3..12),
            seed in any::<u64>(),
        ) {
            let mut rng = fastrand::Rng::with_seed(seed);
            let settings = Settings { gate: None, ..Settings::default() };
            let mut scheduler = scheduler(&[], settings);
            let arrived = (0..programs.len()).map(|id| arrival(id as u32, programs[id].1, 0)).collect();
            scheduler.learn(&Quantum { arrived, ..quantum(vec![]) }, &LIMITS);
            let mut waited = vec![0; programs.len()];
            let mut is_ready = vec![true; programs.len()];
            for _ in 0..100 {
                for (id, (demand, ..)) in programs.iter().enumerate() {
                    scheduler.knowledge.forecasts.insert(id as u32, known(*demand, rng.f64()));
                    scheduler.knowledge.losses.insert(id as u32, rng.f64());
                }
                let ids: Vec<u32> = match scheduler.decide(&LIMITS).run {
                    Choice::Only(ids) => {
                        let runs = |id: u32| ids.contains(&ProgramId(id));
                        let all = (0..programs.len()).all(|id| is_ready[id] || runs(id as u32));
                        prop_assert!(all, "one that waits was stopped");
                        ids.into_iter().map(|id| id.0).filter(|id| is_ready[*id as usize]).collect()
                    }
                    Choice::System => (0..programs.len() as u32).filter(|id| is_ready[*id as usize]).collect(),
                };
                for (id, ready) in is_ready.iter().enumerate() {
                    waited[id] = if ids.contains(&(id as u32)) || !ready { 0 } else { waited[id] + 1 };
                    prop_assert!(waited[id] < programs.len(), "{waited:?}");
                }
                let run = |id: &u32| ran(*id, 100.0 * programs[*id as usize].2.max(0.01), 10.0);
                is_ready.iter_mut().zip(&programs).for_each(|(ready, one)| *ready = !one.3 || rng.bool());
                let waiting = (0..programs.len() as u32).filter(|id| !is_ready[*id as usize]).map(ProgramId).collect();
                scheduler.learn(&Quantum { waiting, ..quantum(ids.iter().map(run).collect()) }, &LIMITS);
            }
        }
    }
}
