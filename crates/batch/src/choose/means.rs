//! The ways to learn what programs demand: counts, readings of memory, or nothing; and how a queue runs by the best of
//! them.

use std::io;
use std::path::PathBuf;

use gristmill_counters::card::Card;
use gristmill_counters::kept::Kept;
use gristmill_os::machine::{cpus_allowed, processors_quota};
use gristmill_os::samples::Sampler;
use gristmill_report::messages::tell;
use gristmill_schedule::Limits;

use super::choice::{ByBandwidth, nothing_to_choose};
use super::counts::{Counters, REQUEST_BYTES};
use super::machine::{SAMPLE_PERIOD, run_counted, run_probed};
use super::probing::Probing;
use crate::run::runner::Runner;

/// The length of the shortest list, in seconds, whose programs are worth choosing. Seeing that there is contention
/// takes half a second, and the last second is left to the system.
const WORTH_CHOOSING_S: f64 = 5.0;
/// Each program needs an open file for each processor, so there are no samples on larger machines.
const SAMPLED_PROCESSORS_MAX: usize = 64;

/// The facts that decide whether programs are chosen.
pub struct Chooser {
    /// `None` if that was not asked for.
    pub how: Option<ByBandwidth>,
    pub processors: usize,
    /// The jobs of the list.
    pub length: usize,
    /// How many programs run at the same time.
    pub slots: usize,
    /// The user has said how many.
    pub is_jobs_given: bool,
    /// The user wants no history.
    pub no_history: bool,
    pub quiet: bool,
}

/// The means of this machine.
enum Means {
    Counted(Counters, Limits),
    Probed(Probing, Limits),
    Nothing,
}

impl Means {
    /// The tier, as named at the start and in each record.
    fn tier(&self) -> &'static str {
        match self {
            Means::Counted(..) => "A",
            Means::Probed(..) => "B",
            Means::Nothing => "C",
        }
    }
}

/// Runs the queue, choosing its programs if that was asked for and can help.
pub fn run_chosen(runner: &mut Runner<'_>, chooser: &Chooser) -> io::Result<()> {
    let Chooser { processors, slots, quiet, .. } = *chooser;
    // With a processor for each program there is nothing to choose.
    let how = chooser.how.filter(|_| slots > processors);
    if chooser.how.is_some() && how.is_none() && !quiet {
        tell(nothing_to_choose(chooser.length, slots, chooser.is_jobs_given, processors));
    }
    let is_short = how.is_some() && runner.is_short(processors, WORTH_CHOOSING_S);
    if is_short && !quiet {
        tell(format_args!(
            "this list usually takes less than {WORTH_CHOOSING_S} s, which choosing them would hardly shorten, so the system shares the processors out"
        ));
    }
    let Some(how) = how.filter(|_| !is_short) else {
        runner.reporter().recorder.tier = None;
        return runner.run();
    };
    let (means, sampler) = chooser.means(how);
    runner.reporter().recorder.tier = Some(means.tier());
    match means {
        Means::Counted(counters, limits) => run_counted(runner, counters, sampler, limits, how),
        Means::Probed(probing, limits) => run_probed(runner, probing, sampler, limits, how),
        Means::Nothing => runner.run(),
    }
}

impl Chooser {
    /// Returns the best means that this machine offers, with a sampler of instructions, and says which it is and why.
    fn means(&self, how: ByBandwidth) -> (Means, Option<Sampler>) {
        let (processors, slots) = (self.processors, self.slots);
        let (means, sentence) = match tier_a(processors) {
            Ok((counters, limits)) => {
                let from = format!("by their demand for memory bandwidth, from counts of {}", counters.of_what());
                (Means::Counted(counters, limits), how.sentence(&from, processors))
            }
            Err(no_counts) => match tier_b(processors) {
                Ok((probing, limits)) => {
                    let sentence = how.sentence("by how much they slow down work on memory", processors);
                    (Means::Probed(probing, limits), format!("{no_counts}; {sentence}"))
                }
                Err(no_probe) => (
                    Means::Nothing,
                    format!(
                        "{no_counts}, and {no_probe}, so the system shares the processors out among {slots} programs"
                    ),
                ),
            },
        };
        let sampler = if matches!(means, Means::Nothing) { None } else { Some(sampler()) };
        let sentence = match &sampler {
            Some(Err(error)) => format!(
                "{sentence}. Instructions are not sampled ({error}), so a program that tells no stages counts as a single phase"
            ),
            _ => sentence,
        };
        let sentence = match how {
            ByBandwidth::Observe if self.no_history && !matches!(means, Means::Nothing) => format!(
                "{sentence}. With --no-history nothing of this is kept for later runs; --by-bandwidth=choose chooses at once"
            ),
            _ => sentence,
        };
        if !self.quiet {
            tell(format_args!("tier {}: {sentence}", means.tier()));
        }
        (means, sampler.and_then(Result::ok))
    }
}

/// Returns the counters and the shared resources of this machine, or the reason why programs are not chosen.
fn tier_a(processors: usize) -> Result<(Counters, Limits), String> {
    let counters = Counters::here()
        .map_err(|error| format!("this machine does not count instructions and requests to memory ({error})"))?;
    let card = Card::here();
    let kept = Kept::in_home(|name| std::env::var_os(name).map(PathBuf::from));
    let ceilings = kept.and_then(|kept| kept.load(&card.identity()).ok()).unwrap_or_default();
    let best = ceilings.last().into_iter().flat_map(|last| &last.rows).map(|row| row.read).fold(0.0, f64::max);
    if best <= 0.0 {
        return Err("the bandwidth of its memory is not known; gristmill machine --measure finds it".to_owned());
    }
    let limits = Limits {
        processors,
        quota: card.quota.unwrap_or(f64::INFINITY),
        memory_bytes: u64::MAX,
        peak: best / REQUEST_BYTES / 1e6,
    };
    Ok((counters, limits))
}

/// Returns the probe of this machine's memory and the shared resources, or the reason why readings tell nothing.
fn tier_b(processors: usize) -> Result<(Probing, Limits), String> {
    if processors < 2 {
        return Err("on one processor no program runs beside another".to_owned());
    }
    let probing = Probing::here()?;
    let quota = processors_quota().unwrap_or(f64::INFINITY);
    // Demands are slow-downs here, and a peak of them is not known.
    Ok((probing, Limits { processors, quota, memory_bytes: u64::MAX, peak: f64::INFINITY }))
}

/// Returns what samples the instructions of programs, or the reason why nothing does.
fn sampler() -> io::Result<Sampler> {
    let processors = cpus_allowed()?;
    if processors.len() > SAMPLED_PROCESSORS_MAX {
        return Err(io::Error::other(format!("more than {SAMPLED_PROCESSORS_MAX} processors")));
    }
    Sampler::new(&processors, SAMPLE_PERIOD)
}
