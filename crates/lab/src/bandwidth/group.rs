//! One execution of a group of programs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use gristmill_schedule::{
    Arrival, Cost, Forecast, Key, Knowledge, Limits, Machine, ProgramId, Progress, Quantum, Reason, Scheduler, Settings,
};

use super::paper::{BENCHMARKS, Benchmark};
use super::simulation::{Ground, Shape, Simulated, Submission, Trace};

/// Synthetic programs from a seed, with the mean demands and numbers of phases of the paper's table 2.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The time that each program takes alone.
    pub alone_us: f64,
    traces: BTreeMap<&'static str, Arc<Trace>>,
}

/// The spread of demands over a program's phases.
const SPREAD: f64 = 0.4;

impl Programs {
    /// Makes all of [`BENCHMARKS`], each with this time alone.
    pub fn new(seed: u64, alone_us: f64) -> Programs {
        let mut rng = Rng::with_seed(seed);
        let traces = BENCHMARKS.iter().map(|benchmark| {
            let shape = Shape {
                bandwidth: benchmark.bandwidth,
                // A quantum in which the code changes is often found to be a separate phase.
                phases: benchmark.phases.div_ceil(2),
                alone_us,
                spread: SPREAD,
                threads: 1,
                waits: 0.0,
                core_peak: Ground::paper().bus.core_peak,
            };
            (benchmark.name, Arc::new(Trace::new(&shape, &mut rng)))
        });
        Programs { alone_us, traces: traces.collect() }
    }

    /// Returns a program, ready to be submitted.
    pub fn of(&self, benchmark: &Benchmark) -> (Key, Arc<Trace>) {
        (Programs::key(benchmark), self.traces[benchmark.name].clone())
    }

    /// Returns all programs of a group.
    pub fn group(&self, members: &[&'static Benchmark]) -> Vec<(Key, Arc<Trace>)> {
        members.iter().map(|benchmark| self.of(benchmark)).collect()
    }

    /// Returns the key of a benchmark's profile.
    pub fn key(benchmark: &Benchmark) -> Key {
        Key { build: benchmark.name.into(), input: "reference".into() }
    }
}

/// The result of an execution.
#[derive(Debug)]
pub struct Outcome<K> {
    /// The time from the arrival of all to the end of the last.
    pub makespan_us: f64,
    /// The share of their speed that programs lost to others while they ran.
    pub lost: f64,
    /// The share of the processors' time that was idle, which is most at the end.
    pub idle: f64,
    /// The knowledge at the end.
    pub knowledge: K,
    /// The number of quanta by the reason of their decision.
    pub reasons: BTreeMap<Reason, u64>,
    /// The cost of decisions.
    pub cost: Cost,
    /// The time that the scheduler itself took.
    pub spent: Spent,
}

/// The time that the scheduler took on the machine that simulates, in all quanta.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// Time to decide which programs run.
    pub deciding: Duration,
    /// Time to learn from counts and samples.
    pub learning: Duration,
    /// The number of quanta.
    pub quanta: u32,
}

/// Runs a group whose programs all arrive at once.
pub fn run_group<K: Knowledge>(
    ground: Ground,
    group: &[(Key, Arc<Trace>)],
    knowledge: K,
    settings: &Settings,
    seed: u64,
) -> Outcome<K> {
    let submissions = group.iter().map(|(key, trace)| Submission {
        at_us: 0.0,
        key: key.clone(),
        trace: trace.clone(),
        memory_bytes: 0,
    });
    let mut machine = Simulated::new(ground, submissions.collect(), seed);
    let mut scheduler = Scheduler::new(knowledge, settings.clone());
    let mut reasons = BTreeMap::new();
    let (mut ran_us, mut alone_us, mut spent) = (0.0, 0.0, Spent::default());
    loop {
        let limits = machine.limits();
        let begin = Instant::now();
        let decision = scheduler.decide(&limits);
        spent.deciding += begin.elapsed();
        let Ok(quantum) = machine.run(&decision, settings.quantum_us);
        let Some(quantum) = quantum else { break };
        *reasons.entry(scheduler.reason()).or_default() += 1;
        for truth in machine.truth() {
            ran_us += truth.ran_us;
            alone_us += truth.alone_us;
        }
        let begin = Instant::now();
        scheduler.learn(&quantum, &limits);
        spent.learning += begin.elapsed();
        spent.quanta += 1;
    }
    let makespan_us = machine.finished().iter().map(|finished| finished.ended_us).fold(0.0, f64::max);
    let processor_us = ground.processors as f64 * makespan_us / (1.0 + ground.overhead);
    Outcome {
        makespan_us,
        idle: 1.0 - ran_us / processor_us,
        lost: 1.0 - alone_us / ran_us,
        reasons,
        spent,
        cost: scheduler.cost(),
        knowledge: scheduler.into_knowledge(),
    }
}

/// No knowledge at all, so the order is the system's.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl Knowledge for Nothing {
    fn begin(&mut self, _: &Arrival) {}
    fn learn(&mut self, _: &Quantum, _: &Limits) {}
    fn end(&mut self, _: ProgramId, _: bool) {}
    fn forecast(&self, _: ProgramId) -> Option<Forecast> {
        None
    }
    fn progress(&self, _: ProgramId) -> Option<Progress> {
        None
    }
}
