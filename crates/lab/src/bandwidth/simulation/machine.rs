//! The simulated machine: programs, processors, a bus and a clock.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;

use fastrand::Rng;
use gristmill_schedule::{Arrival, Choice, Counts, Decision, Ended, Key, Limits, Machine, ProgramId, Quantum, Ran};

use super::bus::Bus;
use super::linux::Linux;
use super::trace::{Cursor, Trace, normal};

/// The properties of a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ground {
    /// The number of processors.
    pub processors: usize,
    /// The memory for programs.
    pub memory_bytes: u64,
    /// The memory bus.
    pub bus: Bus,
    /// The time that scheduling costs, as a share of the time that programs run. They do not run meanwhile.
    pub overhead: f64,
    /// The time between two samples of a program that computes.
    pub sample_us: f64,
    /// The additional requests of a program when all other processors run too, because caches are shared.
    pub sharing: f64,
    /// The variation of demands between executions: the standard deviation of their logarithms.
    pub noise: f64,
    /// The swing of demands within a quantum: in half of its steps a program asks for this share more than on average,
    /// in the others for this share less.
    pub swing: f64,
    /// True if the machine counts instructions and requests.
    pub counts: bool,
}

impl Ground {
    /// The paper's machine, without a scheduler.
    pub fn paper() -> Ground {
        Ground {
            processors: 8,
            memory_bytes: u64::MAX,
            bus: Bus::paper(),
            overhead: 0.0,
            sample_us: 500.0,
            sharing: 0.03,
            noise: 0.03,
            swing: 0.5,
            counts: true,
        }
    }
}

/// A program that will arrive.
#[derive(Clone, Debug)]
pub struct Submission {
    /// The time of its arrival.
    pub at_us: f64,
    /// The key of its profile.
    pub key: Key,
    /// Its trace.
    pub trace: Arc<Trace>,
    /// The memory it needs.
    pub memory_bytes: u64,
}

/// A program that has ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finished {
    /// The program. Submissions are numbered in order.
    pub id: ProgramId,
    /// The time of its arrival.
    pub arrived_us: f64,
    /// The time of its end.
    pub ended_us: f64,
}

/// The true speed of a program, which is hidden from the scheduler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Truth {
    /// The program.
    pub id: ProgramId,
    /// The time it ran in the last quantum.
    pub ran_us: f64,
    /// The time the same work takes alone.
    pub alone_us: f64,
    /// The bandwidth it used in the last quantum.
    pub used: f64,
}

/// The simulated machine.
#[derive(Clone, Debug)]
pub struct Simulated {
    ground: Ground,
    rng: Rng,
    now_us: f64,
    submitted: u32,
    /// Programs to come, by time of arrival.
    coming: VecDeque<(Arrival, Submission)>,
    /// Programs that have arrived but not begun.
    arrived: BTreeMap<ProgramId, Submission>,
    begun: BTreeMap<ProgramId, Execution>,
    linux: Linux,
    finished: Vec<Finished>,
    last: Vec<Truth>,
}

#[derive(Clone, Debug)]
struct Execution {
    trace: Arc<Trace>,
    cursor: Cursor,
    arrived_us: f64,
    /// The factor of this execution's demands.
    factor: f64,
    /// The steps of this quantum in which it asks for more than on average, a bit each.
    bursts: u16,
    /// The elapsed part of a sample's time.
    sample: f64,
    /// Its work in this quantum.
    done: Done,
}

#[derive(Clone, Debug, Default)]
struct Done {
    ran_us: f64,
    alone_us: f64,
    counts: Counts,
    addresses: Vec<u64>,
}

/// The number of steps in which a quantum is computed, 10 ms each. Demands and speeds are constant within a step.
const STEPS: usize = 10;

/// Returns a random half of the steps, a bit each.
fn half_of_steps(rng: &mut Rng) -> u16 {
    let (mut bursts, mut left) = (0, STEPS / 2);
    for step in 0..STEPS {
        if rng.usize(0..STEPS - step) < left {
            bursts |= 1 << step;
            left -= 1;
        }
    }
    bursts
}

impl Simulated {
    /// Makes a machine at time 0. Everything random follows from the seed.
    pub fn new(ground: Ground, mut submissions: Vec<Submission>, seed: u64) -> Simulated {
        let mut machine = Simulated {
            ground,
            rng: Rng::with_seed(seed),
            now_us: 0.0,
            submitted: 0,
            coming: VecDeque::new(),
            arrived: BTreeMap::new(),
            begun: BTreeMap::new(),
            linux: Linux::new(ground.processors),
            finished: Vec::new(),
            last: Vec::new(),
        };
        submissions.sort_by(|a, b| a.at_us.total_cmp(&b.at_us));
        for submission in submissions {
            machine.submit(submission);
        }
        machine
    }

    /// Submits a program. It does not arrive before those submitted earlier.
    pub fn submit(&mut self, submission: Submission) -> ProgramId {
        let arrival = Arrival {
            id: ProgramId(self.submitted),
            key: submission.key.clone(),
            threads: submission.trace.threads,
            memory_bytes: submission.memory_bytes,
        };
        let id = arrival.id;
        self.submitted += 1;
        self.coming.push_back((arrival, submission));
        id
    }

    /// The current time.
    pub fn now_us(&self) -> f64 {
        self.now_us
    }

    /// The programs that have ended, in that order.
    pub fn finished(&self) -> &[Finished] {
        &self.finished
    }

    /// The true speeds of programs in the last quantum.
    pub fn truth(&self) -> &[Truth] {
        &self.last
    }

    /// Returns the programs that have a processor in a step, with the number of their running threads.
    fn occupants(&mut self, run: &Choice, step: usize) -> Vec<(ProgramId, usize)> {
        let begun = &self.begun;
        let can_run = |id: ProgramId| begun.get(&id).is_some_and(|one| one.runs());
        match run {
            Choice::System => {
                let mut running = self.linux.running(can_run);
                running.sort_unstable();
                running.chunk_by(|a, b| a == b).map(|same| (same[0], same.len())).collect()
            }
            Choice::Only(ids) => {
                // If more programs run than there are processors, they take turns.
                let (mut free, count) = (self.ground.processors, ids.len());
                let turns = (0..count).map(|at| ids[(at + step) % count]).filter(|id| can_run(*id));
                let mut occupants = Vec::with_capacity(count);
                for id in turns {
                    let threads = begun[&id].trace.threads.min(free);
                    if threads > 0 {
                        free -= threads;
                        occupants.push((id, threads));
                    }
                }
                occupants
            }
        }
    }

    fn step(&mut self, run: &Choice, step: usize, step_us: f64) {
        let occupants = self.occupants(run, step);
        let busy: usize = occupants.iter().map(|(_, threads)| threads).sum();
        let others = (busy.saturating_sub(1)) as f64 / (self.ground.processors.max(2) - 1) as f64;
        let shared = 1.0 + self.ground.sharing * others;
        // 1. What all demand, and the resulting speeds.
        let bursts: Vec<f64> =
            occupants.iter().map(|(id, _)| self.begun[id].burst(step, shared, &self.ground)).collect();
        let demand = |((id, threads), burst): (&(ProgramId, usize), &f64)| {
            let one = &self.begun[id];
            let part = *threads as f64 / one.trace.threads as f64;
            one.demand() * shared * burst * part
        };
        let demands: Vec<f64> = occupants.iter().zip(&bursts).map(demand).collect();
        let speeds = self.ground.bus.speeds(&demands);
        // 2. Their progress.
        for (((id, threads), speed), burst) in occupants.iter().zip(speeds).zip(bursts) {
            let Some(one) = self.begun.get_mut(id) else { continue };
            let part = *threads as f64 / one.trace.threads as f64;
            let pace = speed * part;
            one.advance(step_us, pace, part, shared * burst, &self.ground, &mut self.rng);
        }
        // 3. Waits pass whether the program may run or not.
        let mut ended_waiting = Vec::new();
        let ran = |id: &ProgramId| occupants.iter().any(|(other, _)| other == id);
        for (id, one) in self.begun.iter_mut().filter(|(_, one)| one.trace.is_waiting(one.cursor)) {
            if !ran(id) {
                one.wait(step_us);
                ended_waiting.extend(one.is_over_now().then_some(*id));
            }
        }
        // Programs stand still while the scheduler works.
        self.now_us += step_us * (1.0 + self.ground.overhead);
        for id in occupants.iter().map(|(id, _)| id).chain(&ended_waiting) {
            if let Some(one) = self.begun.get(id).filter(|one| one.is_over_now()) {
                self.finished.push(Finished { id: *id, arrived_us: one.arrived_us, ended_us: self.now_us });
            }
        }
    }
}

impl Execution {
    fn runs(&self) -> bool {
        !self.is_over_now() && !self.trace.is_waiting(self.cursor)
    }

    fn is_over_now(&self) -> bool {
        self.trace.is_over(self.cursor)
    }

    /// Returns its demand at this place of its trace, averaged over its bursts.
    fn demand(&self) -> f64 {
        self.trace.demand_now(self.cursor).unwrap_or(0.0) * self.factor
    }

    /// Returns the factor of its demand in a step. A processor that is near to its own limit swings less.
    fn burst(&self, step: usize, shared: f64, ground: &Ground) -> f64 {
        let limit = ground.bus.core_peak * self.trace.threads as f64 / (self.demand() * shared);
        let swing = ground.swing.min(limit - 1.0).max(0.0);
        if self.bursts >> step & 1 == 1 { 1.0 + swing } else { 1.0 - swing }
    }

    /// Runs for a time, at a share of its speed alone, until it ends or waits. It makes `requests` times as many
    /// requests as its trace says.
    fn advance(&mut self, step_us: f64, pace: f64, part: f64, requests: f64, ground: &Ground, rng: &mut Rng) {
        let mut left_us = step_us * pace;
        while left_us > 1e-9 && self.runs() {
            let Some(piece) = self.trace.piece(&mut self.cursor, left_us) else { break };
            let Some(code) = piece.code else { break };
            left_us -= piece.alone_us;
            let ran_us = piece.alone_us / pace;
            self.done.ran_us += ran_us * part;
            self.done.alone_us += piece.alone_us;
            self.done.counts.instructions += piece.alone_us * self.trace.rate(code);
            self.done.counts.requests += piece.alone_us * piece.demand * self.factor * requests;
            self.sample += ran_us / ground.sample_us;
            while self.sample >= 1.0 {
                self.sample -= 1.0;
                let address = self.trace.sample(code, rng);
                self.done.addresses.push(address);
            }
        }
    }

    fn wait(&mut self, mut time_us: f64) {
        while time_us > 0.0 && self.trace.is_waiting(self.cursor) {
            match self.trace.piece(&mut self.cursor, time_us) {
                Some(piece) => time_us -= piece.alone_us,
                None => break,
            }
        }
    }
}

impl Machine for Simulated {
    type Error = Infallible;

    fn limits(&self) -> Limits {
        Limits {
            processors: self.ground.processors,
            quota: f64::INFINITY,
            memory_bytes: self.ground.memory_bytes,
            peak: self.ground.bus.peak,
        }
    }

    fn run(&mut self, decision: &Decision, quantum_us: f64) -> Result<Option<Quantum>, Infallible> {
        // 1. Programs begin.
        for id in &decision.begin {
            let Some(submission) = self.arrived.remove(id) else { continue };
            let factor = (self.ground.noise * normal(&mut self.rng)).exp();
            self.linux.begin(*id, submission.trace.threads, &mut self.rng);
            let (cursor, done) = Default::default();
            let (trace, arrived_us) = (submission.trace, submission.at_us);
            self.begun.insert(*id, Execution { trace, cursor, arrived_us, factor, bursts: 0, sample: 0.0, done });
        }
        // 2. They run, or the clock jumps to the next arrival.
        let mut quantum = Quantum::default();
        match self.coming.front() {
            _ if !self.begun.is_empty() => {
                quantum.length_us = quantum_us;
                if self.ground.swing > 0.0 {
                    self.begun.values_mut().for_each(|one| one.bursts = half_of_steps(&mut self.rng));
                }
                (0..STEPS).for_each(|step| self.step(&decision.run, step, quantum_us / STEPS as f64));
                if decision.run == Choice::System {
                    self.linux.turn(&mut self.rng);
                }
            }
            Some((_, next)) => self.now_us = self.now_us.max(next.at_us),
            None if self.arrived.is_empty() => return Ok(None),
            None => {}
        }
        // 3. The counts.
        self.last.clear();
        for (id, one) in &mut self.begun {
            let done = std::mem::take(&mut one.done);
            if one.trace.is_waiting(one.cursor) {
                quantum.waiting.push(*id);
            }
            if one.trace.is_over(one.cursor) {
                quantum.ended.push(Ended { id: *id, whole: true });
            }
            if done.ran_us > 0.0 {
                let (ran_us, used) = (done.ran_us, done.counts.requests / quantum_us);
                self.last.push(Truth { id: *id, ran_us, alone_us: done.alone_us, used });
                let counts = self.ground.counts.then_some(done.counts);
                let processor_us = done.ran_us * one.trace.threads as f64;
                quantum.ran.push(Ran { id: *id, processor_us, counts, addresses: done.addresses });
            }
        }
        if !quantum.ended.is_empty() {
            self.begun.retain(|_, one| !one.trace.is_over(one.cursor));
            self.linux.end(|id| !self.begun.contains_key(&id));
        }
        // 4. The arrivals.
        while self.coming.front().is_some_and(|(_, next)| next.at_us <= self.now_us) {
            if let Some((arrival, submission)) = self.coming.pop_front() {
                self.arrived.insert(arrival.id, submission);
                quantum.arrived.push(arrival);
            }
        }
        Ok(Some(quantum))
    }
}

#[cfg(test)]
mod tests {
    use super::super::trace::Shape;
    use super::*;

    const GROUND: fn() -> Ground = || Ground { sharing: 0.0, noise: 0.0, swing: 0.0, processors: 2, ..Ground::paper() };

    fn submission(at_us: f64, trace: Trace) -> Submission {
        let key = Key { build: "b".into(), input: "i".into() };
        Submission { at_us, key, trace: Arc::new(trace), memory_bytes: 0 }
    }

    fn steady(bandwidth: f64, alone_us: f64) -> Submission {
        submission(0.0, Trace::steady(bandwidth, alone_us))
    }

    /// Runs to the end; `choose` picks the programs that run among those that have begun.
    fn run(machine: &mut Simulated, choose: impl Fn(&[ProgramId]) -> Choice) -> Vec<Quantum> {
        let (mut quanta, mut begun, mut begin) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            let decision = Decision { begin: std::mem::take(&mut begin), run: choose(&begun), sample: true };
            let Ok(quantum) = machine.run(&decision, 100_000.0);
            let Some(quantum) = quantum else { return quanta };
            begin = quantum.arrived.iter().map(|arrival| arrival.id).collect();
            begun.extend(&begin);
            begun.retain(|id| !quantum.ended.iter().any(|ended| ended.id == *id));
            quanta.push(quantum);
        }
    }

    fn ends_us(machine: &Simulated) -> Vec<f64> {
        let mut finished = machine.finished().to_vec();
        finished.sort_by_key(|finished| finished.id);
        finished.iter().map(|finished| finished.ended_us).collect()
    }

    #[test]
    fn programs_that_do_not_disturb_each_other_take_their_time_alone() {
        let mut machine = Simulated::new(GROUND(), vec![steady(1.0, 2e6), steady(60.0, 3e6)], 1);
        run(&mut machine, |_| Choice::System);
        let ends = ends_us(&machine);
        assert!((ends[0] - 2e6).abs() < 30e3 && (ends[1] - 3e6).abs() < 30e3, "{ends:?}");
    }

    #[test]
    fn the_overhead_of_3_19_percent_is_charged() {
        let ground = Ground { overhead: 0.0319, ..GROUND() };
        let mut machine = Simulated::new(ground, vec![steady(1.0, 10e6)], 1);
        run(&mut machine, |_| Choice::System);
        assert!((ends_us(&machine)[0] / 10.319e6 - 1.0).abs() < 0.003);
    }

    #[test]
    fn programs_that_are_not_chosen_stand_still() {
        let mut machine = Simulated::new(GROUND(), (0..3).map(|_| steady(1.0, 1e6)).collect(), 1);
        run(&mut machine, |begun| Choice::Only(begun.first().copied().into_iter().collect()));
        let ends = ends_us(&machine);
        assert!(ends.windows(2).all(|pair| pair[1] - pair[0] > 0.99e6), "{ends:?}");
    }

    #[test]
    fn counts_do_not_depend_on_interruptions() {
        let shape =
            Shape { bandwidth: 30.0, phases: 9, alone_us: 3e6, spread: 0.5, threads: 1, waits: 0.0, core_peak: 62.0 };
        let trace = Trace::new(&shape, &mut Rng::with_seed(1));
        let requests = trace.left(Cursor::default()).requests;
        let submissions = (0..5).map(|_| submission(0.0, trace.clone())).collect();
        let quanta = run(&mut Simulated::new(GROUND(), submissions, 1), |_| Choice::System);
        for id in (0..5).map(ProgramId) {
            let of_this = quanta.iter().flat_map(|quantum| &quantum.ran).filter(|ran| ran.id == id);
            let (counted, samples) = of_this.fold((0.0, 0.0), |(requests, samples), ran| {
                let counts = ran.counts.expect("it counts");
                (requests + counts.requests, samples + ran.addresses.len() as f64 * 500.0 - ran.processor_us)
            });
            assert!((counted / requests - 1.0).abs() < 1e-6, "{counted} {requests}");
            assert!(samples.abs() < 1000.0, "a sample every half millisecond: {samples}");
        }
    }

    /// The average of demands over a quantum says nothing of the moments in which all ask for much.
    #[test]
    fn demands_that_swing_within_a_quantum_collide_though_their_average_does_not() {
        let run_with = |swing| {
            let ground = Ground { processors: 4, swing, ..GROUND() };
            let mut machine = Simulated::new(ground, (0..4).map(|_| steady(22.0, 2e6)).collect(), 1);
            let quanta = run(&mut machine, |_| Choice::System);
            let whole = &quanta[5];
            let used: Vec<f64> = whole.ran.iter().filter_map(|ran| ran.counts).map(|counts| counts.requests).collect();
            (ends_us(&machine)[0], used)
        };
        let ((calm_us, calm), (swinging_us, swinging)) = (run_with(0.0), run_with(0.5));
        assert!(swinging_us > 1.01 * calm_us, "{swinging_us} {calm_us}");
        // They ask for the same, all in all.
        for (one, other) in swinging.iter().zip(&calm) {
            assert!((one / other - 1.0).abs() < 0.1, "{swinging:?} {calm:?}");
        }
        // A program alone is as fast as ever.
        let mut alone = Simulated::new(Ground { swing: 0.5, ..GROUND() }, vec![steady(40.0, 2e6)], 1);
        run(&mut alone, |_| Choice::System);
        assert!((ends_us(&alone)[0] - 2e6).abs() < 20e3);
    }

    #[test]
    fn the_clock_jumps_to_the_next_arrival() {
        let late = submission(60e6, Trace::steady(1.0, 1e6));
        let mut machine = Simulated::new(GROUND(), vec![late, steady(1.0, 1e6)], 1);
        let quanta = run(&mut machine, |_| Choice::System);
        assert!(quanta.len() < 40);
        assert_eq!(ends_us(&machine).iter().map(|end| (end / 1e6).round()).collect::<Vec<_>>(), [1.0, 61.0]);
    }

    #[test]
    fn a_wait_passes_while_another_program_has_the_processor() {
        let shape =
            |waits| Shape { bandwidth: 1.0, phases: 1, alone_us: 1e6, spread: 0.0, threads: 1, waits, core_peak: 62.0 };
        let make = |waits| submission(0.0, Trace::new(&shape(waits), &mut Rng::with_seed(1)));
        let ground = Ground { processors: 1, ..GROUND() };
        let mut machine = Simulated::new(ground, vec![make(0.5), make(0.0)], 1);
        let quanta = run(&mut machine, |_| Choice::System);
        assert!(quanta.iter().any(|quantum| !quantum.waiting.is_empty()));
        let other = ends_us(&machine)[1];
        assert!(other < 1.7e6, "half of the time it would end after 2 s: {other}");
    }

    #[test]
    fn a_program_with_threads_takes_their_processors() {
        let shape =
            Shape { bandwidth: 1.0, phases: 1, alone_us: 1e6, spread: 0.0, threads: 2, waits: 0.0, core_peak: 62.0 };
        let make = || submission(0.0, Trace::new(&shape, &mut Rng::with_seed(1)));
        let mut machine = Simulated::new(GROUND(), vec![make(), make()], 1);
        let quanta = run(&mut machine, |_| Choice::System);
        let last = ends_us(&machine).into_iter().fold(0.0, f64::max);
        assert!((last / 2e6 - 1.0).abs() < 0.1, "{last}");
        let processor_us: f64 = quanta.iter().flat_map(|quantum| &quantum.ran).map(|ran| ran.processor_us).sum();
        assert!((processor_us / 4e6 - 1.0).abs() < 0.01, "{processor_us}");
    }

    #[test]
    fn the_same_seed_gives_the_same_history() {
        let history = |seed| {
            let submissions = (0..6).map(|at| steady(10.0 * f64::from(at), 1e6)).collect();
            run(&mut Simulated::new(GROUND(), submissions, seed), |_| Choice::System)
        };
        assert!(history(1) == history(1) && history(1) != history(2));
    }
}
