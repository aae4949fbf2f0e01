//! Samples a run: the state of each of its threads at one moment, and, where the kernel tells, what the kernel does
//! for it.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use gristmill_counters::files::{here, is_hidden};
use gristmill_counters::kernel_symbols::Symbols;
use gristmill_counters::sleep::Sleep;
use gristmill_counters::threads::{Glance, Spent, Watcher};
use gristmill_os::kernel_calls::KernelCalls;
use gristmill_os::machine::cpus_allowed;

use crate::diagnose::{KernelWork, Moment, Seen};

/// A sampler of a run.
pub struct Look {
    watcher: Watcher,
    /// `None` if this user may not sample the kernel.
    calls: Option<KernelCalls>,
    seen: Seen,
    workers: u64,
    last: Instant,
}

const PERIOD: Duration = Duration::from_millis(5);
/// The functions of the kernel; `None` if it hides them.
static SYMBOLS: LazyLock<Option<Symbols>> = LazyLock::new(|| Symbols::read(&here));

/// The processor time between two samples of what the kernel does.
const CALLS_PERIOD: Duration = Duration::from_millis(1);
/// The pause between two samples, as a multiple of the time of one.
const REST: u32 = 9;

impl Look {
    pub fn new(workers: u64) -> Look {
        let is_told = !is_hidden("events") && SYMBOLS.is_some();
        let sampled = || KernelCalls::start(&cpus_allowed().ok()?, CALLS_PERIOD).ok();
        Look {
            watcher: Watcher::new(std::process::id()),
            calls: is_told.then(sampled).flatten(),
            seen: Seen::default(),
            workers,
            last: Instant::now(),
        }
    }

    /// Returns the sum of all samples.
    pub fn seen(mut self) -> Seen {
        let Spent { on_processor, waited, busiest, are_apart } = self.watcher.spent();
        self.seen.are_apart = are_apart;
        (self.seen.on_processor, self.seen.waited, self.seen.busiest) = (on_processor, waited, busiest);
        self.take_calls();
        self.seen
    }

    fn take_calls(&mut self) {
        if let (Some(calls), Some(symbols)) = (&self.calls, &*SYMBOLS) {
            calls.take(&mut |chain| {
                let chain: Vec<&str> = chain.iter().filter_map(|address| symbols.name(*address)).collect();
                self.seen.add_kernel(KernelWork::of(&chain));
            });
        }
    }

    /// Records that the command has started.
    pub fn begin(&mut self) {
        self.last = Instant::now();
    }

    /// Takes a sample and returns the time until the next one.
    pub fn once(&mut self) -> Duration {
        let began = Instant::now();
        let glance = self.watcher.look();
        self.seen.add(&moment(&glance, self.workers), (began - self.last).as_secs_f64(), self.workers);
        self.last = began;
        self.take_calls();
        PERIOD.max(began.elapsed() * REST)
    }
}

/// Returns the threads that may be workers.
fn moment(glance: &Glance, workers: u64) -> Moment {
    // A process that waits for its children is not a worker.
    let is_worker = |sleep: &&Sleep| **sleep != Sleep::Child;
    let mut asleep: Vec<Sleep> = glance.asleep.iter().filter(is_worker).copied().collect();
    // If there are more threads than workers, some wait for the others to end, as with pthread_join.
    let surplus = (glance.runnable as usize + asleep.len()).saturating_sub(workers as usize);
    for aside in glance.aside.iter().filter(is_worker).take(surplus) {
        if let Some(at) = asleep.iter().position(|sleep| sleep == aside) {
            asleep.swap_remove(at);
        }
    }
    Moment { runnable: glance.runnable, asleep }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half of the time of one sleeping thread was once attributed to a lock: that of the first thread, which waited
    /// for its end.
    #[test]
    fn a_first_thread_that_waits_for_the_others_is_not_a_worker() {
        let glance =
            |runnable, asleep: &[Sleep]| Glance { runnable, asleep: asleep.to_vec(), aside: vec![Sleep::Signal] };
        let asleep = |glance: &Glance, workers| moment(glance, workers).asleep;
        assert_eq!(asleep(&glance(0, &[Sleep::Signal, Sleep::Clock]), 1), [Sleep::Clock]);
        assert_eq!(asleep(&glance(0, &[Sleep::Lock, Sleep::Signal]), 1), [Sleep::Lock]);
        assert_eq!(asleep(&glance(1, &[Sleep::Signal]), 1), []);
        // The first thread is one of the workers, as with OpenMP.
        assert_eq!(asleep(&glance(1, &[Sleep::Signal]), 2), [Sleep::Signal]);
        assert_eq!(asleep(&glance(0, &[Sleep::Signal, Sleep::Child]), 1), [Sleep::Signal]);
    }
}
