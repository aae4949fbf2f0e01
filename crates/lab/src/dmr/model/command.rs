//! `gristmill-lab dmr-model`: runs strategies in turn, each in a process of its own, and prints a line for each run.

use std::fmt::Write;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use gristmill_cli::{Failure, print};
use gristmill_counters::files::here;
use gristmill_counters::kernel_symbols::Symbols;
use gristmill_os::kernel_calls::KernelCalls;
use gristmill_os::machine::cpus_allowed;
use gristmill_os::perf::{Counter, Event, Space};
use gristmill_os::process::{Death, fork_worker};
use gristmill_os::usage::Usage;
use gristmill_os::{Pieces, Region, Window};
use gristmill_scale::diagnose::KernelWork;

use super::application::{ModelApp, ModelInput};
use super::oracle;
use super::phoenix::Phoenix;
use super::pipeline::Pipeline;
use super::shared::{STATS, Stat, Stats, Used};
use super::strategy::{Strategy, Way};
use crate::generate::Size;

/// Run strategies of the small MapReduce of `gristmill-lab dmr`, one after the other
///
/// A part of `gristmill-lab dmr`. Prints a line for each run: the strategy, and numbers by their names.
#[derive(Args)]
pub struct Model {
    /// The application
    #[arg(long, value_enum)]
    app: ModelApp,

    /// The size of the input
    #[arg(long, value_enum, default_value_t)]
    size: Size,

    /// Words of eight bytes of input, instead of a size
    #[arg(long, value_name = "N", conflicts_with = "size")]
    words: Option<usize>,

    /// Seed of the input
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// The strategy to begin with, so that rounds differ
    #[arg(long, default_value_t = 0)]
    first: usize,

    /// Sample what the kernel does
    #[arg(long)]
    sample: bool,

    /// Do not check the answers, which takes as long as a run
    #[arg(long)]
    unchecked: bool,

    /// Run threads in this process, which tools that cannot follow a fork need; answers are not checked
    #[arg(long)]
    here: bool,

    /// The strategies, such as hash+map+reduce,remap,processes,pipeline,8
    #[arg(required = true)]
    strategies: Vec<Strategy>,
}

/// The words of a run that its process reports: its times, then the numbers of its workers.
const WALL_NS: usize = 0;
const START_NS: usize = 1;
const TOTALS: usize = 2;

impl Model {
    pub fn run(&self) -> Result<(), Failure> {
        let failed = |source| Failure::from(gristmill::Error::System { what: "running the model", source });
        let input = self
            .words
            .map_or_else(|| ModelInput::new(self.app, self.size), |words| ModelInput::of_words(self.app, words));
        let memory = input.generate(self.seed).map_err(failed)?;
        let expected = match self.unchecked {
            true => None,
            false => Some(oracle::answer(self.app, &Window::onto(&memory, 0).map_err(failed)?.words()[..input.words])),
        };
        if self.here {
            let region = Region::new((TOTALS + STATS.len()) * 8, 0).map_err(failed)?;
            for strategy in &self.strategies {
                let answer = answer_of(strategy, &input).map_err(failed)?;
                run(strategy, &input, &memory, &answer, region.u64s(0, TOTALS + STATS.len())).map_err(failed)?;
            }
            return Ok(());
        }
        let kernel = if self.sample { Kernel::start() } else { None };
        let count = self.strategies.len();
        for strategy in (0..count).map(|at| &self.strategies[(at + self.first) % count]) {
            let line = self.once(strategy, &input, &memory, expected.as_deref(), kernel.as_ref()).map_err(failed)?;
            print(line)?;
        }
        Ok(())
    }

    /// Runs a strategy in a process of its own, so that no memory is left of the last one.
    fn once(
        &self,
        strategy: &Strategy,
        input: &ModelInput,
        memory: &Pieces,
        expected: Option<&[(u64, u64)]>,
        kernel: Option<&Kernel>,
    ) -> io::Result<String> {
        let answer = answer_of(strategy, input)?;
        let region = Region::new((TOTALS + STATS.len()) * 8, 0)?;
        let report = region.u64s(0, TOTALS + STATS.len());
        let before = Usage::of_children();
        let misses = Counter::start(Event::CacheMisses, Space::User).ok();
        let ran = fork_worker(|| match run(strategy, input, memory, &answer, report) {
            Ok(()) => 0,
            Err(error) => {
                gristmill_report::messages::tell(format_args!("{strategy}: {error}"));
                1
            }
        });
        match ran.map_err(io::Error::other)?.wait()? {
            Death::Exited(0) => {}
            death => return Err(io::Error::other(format!("{strategy}: {death}"))),
        }
        let used = Usage::of_children() - before;
        let pairs = pairs(&answer, strategy.workers)?;
        if strategy.way != Way::MapOnly && expected.is_some_and(|expected| expected != pairs) {
            return Err(io::Error::other(format!("{strategy}: the answer is not that of a sequential loop")));
        }
        let value = |at: usize| report[at].load(Ordering::Relaxed);
        let mut line =
            format!("{strategy} wall_ns={} start_ns={} keys={}", value(WALL_NS), value(START_NS), pairs.len());
        for (stat, name) in STATS {
            write!(line, " {name}={}", value(TOTALS + stat as usize)).expect("a string takes everything");
        }
        // With the time in which threads and processes were started and ended.
        write!(line, " all_us={}", used.user_us + used.sys_us).expect("a string takes everything");
        if let Some(misses) = misses.and_then(|counter| counter.count().ok()) {
            write!(line, " cache_misses={misses}").expect("a string takes everything");
        }
        if let Some(kernel) = kernel {
            let [faults, address_space, locks] = kernel.take();
            write!(line, " fault_ms={faults} address_space_ms={address_space} lock_ms={locks}")
                .expect("a string takes everything");
        }
        Ok(line)
    }
}

/// Makes a piece for the answer of each reducer, with room for all pairs. What is not written takes no memory.
fn answer_of(strategy: &Strategy, input: &ModelInput) -> io::Result<Pieces> {
    Pieces::new(strategy.workers, (input.pairs_max() + 1) * 16)
}

/// Runs a strategy in this process.
fn run(
    strategy: &Strategy,
    input: &ModelInput,
    memory: &Pieces,
    answer: &Pieces,
    report: &[AtomicU64],
) -> io::Result<()> {
    let window = Window::onto(memory, 0)?;
    let (words, totals) = (&window.words()[..input.words], &report[TOTALS..]);
    let began = Instant::now();
    let workers = strategy.workers;
    let started = match strategy.way {
        Way::Dmr { buffer, combine, channel, isolated, barrier } => {
            Pipeline { input, words, buffer, combine, channel, isolated, barrier, workers }.run(answer, totals)?
        }
        Way::Phoenix { combine } => Phoenix { input, words, combine, workers }.run(answer, totals)?,
        Way::MapOnly => {
            let (used, mut stats, mut emitted) = (Used::now(), Stats::default(), 0);
            for task in 0..input.tasks() {
                input.map(words, task, &mut |key, value| {
                    std::hint::black_box((key, value));
                    emitted += 1;
                });
            }
            stats.add(Stat::Emitted, emitted);
            used.add_to(&mut stats, [Stat::MapAllocations, Stat::MapBytes]);
            stats.publish(totals);
            began
        }
    };
    let nanoseconds = |time: Duration| time.as_nanos() as u64;
    report[WALL_NS].store(nanoseconds(began.elapsed()), Ordering::Relaxed);
    // Workers set themselves up side by side.
    let set_up_ns = totals[Stat::SetUpNs as usize].load(Ordering::Relaxed) / workers as u64;
    report[START_NS].store(nanoseconds(started - began) + set_up_ns, Ordering::Relaxed);
    Ok(())
}

/// Returns the pairs that all reducers have written, in the order of their keys.
fn pairs(answer: &Pieces, reducers: usize) -> io::Result<Vec<(u64, u64)>> {
    let mut pairs = Vec::new();
    for reducer in 0..reducers {
        let window = Window::onto(answer, reducer)?;
        let word = |at: usize| window.words()[at].load(Ordering::Relaxed);
        pairs.extend((0..word(0) as usize).map(|at| (word(1 + 2 * at), word(2 + 2 * at))));
    }
    pairs.sort_unstable();
    Ok(pairs)
}

/// A sampler of what the kernel does for the runs.
struct Kernel {
    calls: KernelCalls,
    symbols: Symbols,
}

impl Kernel {
    /// Starts to sample; `None` where this user may not, or the kernel hides its functions.
    fn start() -> Option<Kernel> {
        let calls = KernelCalls::start(&cpus_allowed().ok()?, Duration::from_millis(1)).ok()?;
        Some(Kernel { calls, symbols: Symbols::read(&here)? })
    }

    /// Returns the milliseconds since the last call in page faults, in changes of the address space, and, among both,
    /// in locks.
    fn take(&self) -> [u64; 3] {
        let mut counts = [0; 3];
        self.calls.take(&mut |chain| {
            let chain: Vec<&str> = chain.iter().filter_map(|address| self.symbols.name(*address)).collect();
            let work = KernelWork::of(&chain);
            let is_of_memory = matches!(work, KernelWork::PageFaults | KernelWork::AddressSpace);
            counts[0] += u64::from(work == KernelWork::PageFaults);
            counts[1] += u64::from(work == KernelWork::AddressSpace);
            counts[2] += u64::from(is_of_memory && is_in_lock(&chain));
        });
        counts
    }
}

/// Returns true if a chain of calls, the innermost first, waits for a lock or holds up others to get one.
fn is_in_lock(chain: &[&str]) -> bool {
    let locks = [
        "spin_lock",
        "spin_on_owner",
        "osq_lock",
        "rwsem",
        "down_read",
        "down_write",
        "up_read",
        "up_write",
        "mmap_lock",
    ];
    chain.iter().take(3).any(|function| locks.iter().any(|lock| function.contains(lock)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_known_by_the_innermost_calls() {
        assert!(is_in_lock(&["native_queued_spin_lock_slowpath", "_raw_spin_lock", "do_anonymous_page"]));
        assert!(is_in_lock(&["rwsem_down_read_slowpath", "down_read", "do_user_addr_fault"]));
        assert!(!is_in_lock(&["clear_page_erms", "do_anonymous_page", "handle_mm_fault", "exc_page_fault"]));
        assert!(!is_in_lock(&["clear_page_erms", "a", "b", "down_read"]));
    }
}
