//! This machine, as the scheduling policy sees it: quanta in which some programs run and others are stopped.
//!
//! The queue decides when a program begins, and admits it by memory. The policy chooses, of those that have begun,
//! which run in the next quantum. There are three tiers:
//!
//! - A: the processor counts instructions and memory traffic or cache misses, so the policy learns what each program
//!   demands.
//! - B: nothing counts them. The policy learns from readings of memory how busy each program keeps it
//!   ([`super::probing`]).
//! - C: neither. The system shares the processors out, and nothing is ever stopped.
//!
//! Programs are only observed, in longer quanta and without a stop, unless a gain of choosing them was measured, or it
//! is the turn to measure one ([`gristmill_schedule::TrialRule`]), or the user asks for it.
//!
//! In tiers A and B, sampled instruction addresses tell in which phase a program is, or a stage that the program tells
//! itself. Where the kernel gives no samples, a program without stages is a single phase.

use std::collections::BTreeMap;
use std::io;
use std::mem::take;
use std::rc::Rc;
use std::time::{Duration, Instant};

use gristmill_os::samples::Sampler;
use gristmill_schedule::{
    Arrival, Choice, Counts, Decision, Ended, GateRule, Key, Learned, Learning, Limits, Machine, ProgramId, Quantum,
    Ran, Scheduler, Settings, Similarity, Store, TrialRule, drive,
};

use super::addresses::Addresses;
use super::choice::ByBandwidth;
use super::counts::{CountSource, Counters};
use super::probing::Probing;
use crate::program::heartbeat::Heartbeat;
use crate::program::identity::Identity;
use crate::program::observed::{Observed, Observers};
use crate::run::runner::{RoundEnd, Runner};

/// The share of a quantum below which a program waited for input or output rather than for a processor.
const USED_MIN: f64 = 0.01;

/// The processor time between two samples of a program.
pub const SAMPLE_PERIOD: Duration = Duration::from_millis(1);
/// In tier B, programs are sampled only in each fourth quantum. Sampling in every quantum took 2.4 % of the processor
/// time on a virtual machine, where timer interrupts are slow.
const SAMPLE_EVERY: u64 = 4;
/// The number of samples from which they say something of a phase.
const ADDRESSES_MIN: usize = 16;

/// A program that has begun.
struct Seen {
    id: ProgramId,
    attempt: u32,
    processor_us: u64,
    counts: Counts,
    heartbeat: Option<Heartbeat>,
}

/// This machine.
struct Here<'r, 'a, S> {
    runner: &'r mut Runner<'a>,
    source: S,
    /// `None` where the kernel gives no samples.
    addresses: Option<Addresses>,
    limits: Limits,
    seen: BTreeMap<usize, Seen>,
    ids: u32,
    /// The programs that have begun in this quantum.
    arrived: Vec<Arrival>,
    /// The number of programs that ran in the last quantum.
    ran: usize,
    /// The requests of all programs until the end of the last quantum.
    all_requests: Option<f64>,
}

/// Returns whether programs that share the processors have enough samples each. If not, the samples would only cost
/// time.
fn has_enough_samples(quantum_us: f64, processors: usize, programs: usize) -> bool {
    quantum_us * processors as f64 >= (SAMPLE_PERIOD * ADDRESSES_MIN as u32).as_micros() as f64 * programs as f64
}

/// The rules of learning for samples of real programs.
fn learning() -> Learning {
    // About fifty samples of the same code are up to 0.9 apart where the code is spread widely; different code is
    // between 1 and 2 apart.
    let similarity = Similarity { distance_max: 1.0, phases_max: 64 };
    Learning { similarity, addresses_min: ADDRESSES_MIN, earlier_transitions: true }
}

/// The settings of the scheduler for real programs. Their last second is left to the system: programs that were chosen
/// in quanta of 100 ms until the end left a processor idle for 0.2 to 0.3 s there.
fn settings(how: ByBandwidth) -> Settings {
    let trial = (how == ByBandwidth::Observe).then(TrialRule::default);
    Settings { finish: Some(10.0), trial, ..Settings::default() }
}

/// Runs the queue in tier A. What the policy learns is kept in the history.
pub fn run_counted(
    runner: &mut Runner<'_>,
    source: Counters,
    sampler: Option<Sampler>,
    limits: Limits,
    how: ByBandwidth,
) -> io::Result<()> {
    run(runner, (source, sampler), limits, settings(how), Learned::new(Store::default(), learning()))
}

/// Runs the queue in tier B.
pub fn run_probed(
    runner: &mut Runner<'_>,
    mut source: Probing,
    sampler: Option<Sampler>,
    limits: Limits,
    how: ByBandwidth,
) -> io::Result<()> {
    let undisturbed = source.undisturbed();
    runner.reporter().recorder.undisturbed(&undisturbed);
    let learned = Learned::probed(Store::default(), learning(), &undisturbed);
    // What a pair of programs loses is not measured, so no pair is found wrong. The loss that choosing would avoid is
    // a forecast from readings, so the gate follows it. On two processors, of four programs two that make each other
    // half as slow again lose 5.5 % in the mean of all: hence not the usual 5 %.
    let gate = Some(GateRule { watch_quanta: 3, loss_min: 0.03, open_quanta: 50, follows: true });
    let settings = Settings { pairings: false, gate, sample_every: SAMPLE_EVERY, ..settings(how) };
    run(runner, (source, sampler), limits, settings, learned)
}

/// Runs the queue, and lets the policy choose the programs of each quantum.
fn run<S: CountSource>(
    runner: &mut Runner<'_>,
    (source, sampler): (S, Option<Sampler>),
    limits: Limits,
    settings: Settings,
    learned: Learned,
) -> io::Result<()> {
    let sampler = sampler.map(Rc::new);
    runner.observe(Observed {
        events: source.events(),
        traffic: source.traffic(),
        sampler: sampler.clone(),
        stages: true,
    });
    // The queue admits programs by their memory.
    let mut scheduler = Scheduler::new(learned, Settings { memory: false, ..settings });
    let mut here = Here::new(runner, source, sampler.map(Addresses::new), limits);
    drive(&mut here, &mut scheduler, |here, key| here.runner.reporter().recorder.learned(key))?;
    let dropped = scheduler.dropped();
    runner.reporter().decided(scheduler.reasons());
    let mut store = scheduler.into_knowledge().into_store();
    store.dropped.extend(dropped);
    runner.reporter().recorder.keep(&store);
    runner.finish()
}

impl<S: CountSource> Machine for Here<'_, '_, S> {
    type Error = io::Error;

    fn limits(&self) -> Limits {
        self.limits
    }

    fn run(&mut self, decision: &Decision, quantum_us: f64) -> io::Result<Option<Quantum>> {
        let is_chosen = matches!(decision.run, Choice::Only(_));
        // 1. Stop, and then continue: a program that is continued goes to a processor that is idle at this moment, or
        //    waits for its old one.
        let chosen = |seen: Option<&Seen>| match (&decision.run, seen) {
            (Choice::System, _) | (_, None) => true,
            (Choice::Only(ids), Some(seen)) => ids.contains(&seen.id),
        };
        for stops in [true, false] {
            for (job, program) in self.runner.running() {
                if chosen(self.seen.get(job)) != stops {
                    program.set_stopped(stops)?;
                }
            }
        }
        if let Some(addresses) = &mut self.addresses {
            let tell = is_chosen || has_enough_samples(quantum_us, self.limits.processors, self.ran);
            addresses.pause(!(decision.sample && tell));
        }
        // 2. Run.
        let (began, planned) = (Instant::now(), Duration::from_micros(quantum_us as u64));
        let mut readings = Vec::new();
        // When a chosen program ends, its processor is idle until others are chosen.
        let mut over = RoundEnd::Moment;
        for moment in self.source.moments(planned) {
            over = self.runner.round(Some(began + moment), is_chosen)?;
            if over != RoundEnd::Moment {
                break;
            }
            self.take_in_new();
            readings.extend(self.source.read());
        }
        if over == RoundEnd::Moment {
            over = self.runner.round(Some(began + planned), is_chosen)?;
        }
        let length_us = (began.elapsed().as_secs_f64() * 1e6).max(1.0);
        // 3. Report.
        if let Some(addresses) = &mut self.addresses {
            addresses.take_in();
        }
        let mut quantum = Quantum { length_us, readings, ..Quantum::default() };
        self.report_ended(&mut quantum);
        self.take_in_new();
        self.report_running(&mut quantum, is_chosen);
        self.report_foreign(&mut quantum);
        self.ran = quantum.ran.len();
        Ok((over != RoundEnd::Queue || !quantum.ended.is_empty()).then_some(quantum))
    }
}

impl<'r, 'a, S: CountSource> Here<'r, 'a, S> {
    fn new(runner: &'r mut Runner<'a>, source: S, addresses: Option<Addresses>, limits: Limits) -> Here<'r, 'a, S> {
        Here {
            runner,
            source,
            addresses,
            limits,
            seen: BTreeMap::new(),
            ids: 0,
            arrived: Vec::new(),
            ran: 0,
            all_requests: None,
        }
    }

    /// Reports programs that have ended, with what they used since the last quantum.
    fn report_ended(&mut self, quantum: &mut Quantum) {
        let running: BTreeMap<usize, u32> =
            self.runner.running().iter().map(|(job, program)| (*job, program.attempt)).collect();
        let gone: Vec<usize> = self
            .seen
            .iter()
            .filter(|(job, seen)| running.get(job) != Some(&seen.attempt))
            .map(|(job, _)| *job)
            .collect();
        for job in gone {
            let Some(seen) = self.seen.remove(&job) else { continue };
            let mut records = self.runner.reporter().records().iter().rev();
            let record = records.find(|record| record.job == job && record.attempt == seen.attempt);
            let used_us = record.map_or(0, |record| record.used.user_us + record.used.sys_us);
            let whole = record.and_then(|record| record.outcome.as_ref()).is_some_and(|outcome| outcome.is_success());
            match self.arrived.iter().position(|arrival| arrival.id == seen.id) {
                // It began in this quantum, so the policy has never heard of it.
                Some(place) => drop(self.arrived.remove(place)),
                None => {
                    self.report(quantum, &seen, used_us.max(seen.processor_us));
                    quantum.ended.push(Ended { id: seen.id, whole });
                }
            }
            self.source.end(seen.id);
            if let Some(addresses) = &mut self.addresses {
                addresses.end(seen.id);
            }
        }
    }

    /// Takes in programs that have begun, so that the next reading knows of them.
    fn take_in_new(&mut self) {
        // The end of an earlier attempt is reported first.
        let is_new = |job: &usize| !self.seen.contains_key(job);
        let new: Vec<usize> = self.runner.running().keys().copied().filter(is_new).collect();
        for job in new {
            let Some((of, program)) = self.runner.program(job) else { continue };
            self.ids += 1;
            let id = ProgramId(self.ids);
            let Observers { counters, traffic, followed, heartbeat } = take(&mut program.observers);
            self.source.begin(id, counters, traffic);
            if let Some(addresses) = &mut self.addresses {
                addresses.begin(id, followed);
            }
            let identity = program.identity.clone().unwrap_or_else(|| Identity::of(of));
            let Identity { build, input, .. } = identity;
            let threads = of.threads.max(1);
            self.arrived.push(Arrival { id, key: Key { build, input }, threads, memory_bytes: 0 });
            let seen = Seen { id, attempt: program.attempt, processor_us: 0, counts: Counts::default(), heartbeat };
            self.seen.insert(job, seen);
        }
    }

    /// Reports programs that run, and those that have begun in this quantum.
    fn report_running(&mut self, quantum: &mut Quantum, is_chosen: bool) {
        quantum.arrived = take(&mut self.arrived);
        let mut now = Vec::new();
        for (job, program) in self.runner.running() {
            let Some(seen) = self.seen.get(job) else { continue };
            let processor_us = program.processor_us(|| self.source.processor_us(seen.id));
            program.note_order(is_chosen, processor_us);
            now.push((*job, processor_us, program.is_stopped()));
        }
        for (job, processor_us, is_stopped) in now {
            let Some(seen) = self.seen.remove(&job) else { continue };
            let used_us = processor_us.saturating_sub(seen.processor_us) as f64;
            let is_new = quantum.arrived.iter().any(|arrival| arrival.id == seen.id);
            let seen = if is_new || used_us >= USED_MIN * quantum.length_us {
                // What it has done so far in its first quantum is not reported: that was a part of the quantum.
                if !is_new {
                    self.report(quantum, &seen, processor_us);
                }
                let counts = self.source.counts(seen.id).unwrap_or(seen.counts);
                Seen { processor_us, counts, ..seen }
            } else {
                if !is_stopped {
                    quantum.waiting.push(seen.id);
                }
                seen
            };
            self.seen.insert(job, seen);
        }
    }

    /// Reports the requests of programs outside the queue, where all are counted.
    fn report_foreign(&mut self, quantum: &mut Quantum) {
        let Some(all) = self.source.all_requests() else { return };
        let before = self.all_requests.replace(all);
        let ours: f64 = quantum.ran.iter().filter_map(|ran| ran.counts).map(|counts| counts.requests).sum();
        quantum.foreign_requests = before.map_or(0.0, |before| (all - before - ours).max(0.0));
    }

    /// Reports what a program used since the last quantum.
    fn report(&mut self, quantum: &mut Quantum, seen: &Seen, processor_us: u64) {
        let counts = self.source.counts(seen.id).map(|counts| Counts {
            instructions: counts.instructions - seen.counts.instructions,
            requests: counts.requests - seen.counts.requests,
        });
        let processor_us = processor_us.saturating_sub(seen.processor_us) as f64;
        let sampled = self.addresses.as_mut().map(|addresses| addresses.of(seen.id)).unwrap_or_default();
        let stage = seen.heartbeat.as_ref().and_then(Heartbeat::address);
        let addresses = stage.map_or(sampled, |address| vec![address; ADDRESSES_MIN]);
        quantum.ran.push(Ran { id: seen.id, processor_us, counts, addresses });
    }
}

#[cfg(test)]
mod tests;
