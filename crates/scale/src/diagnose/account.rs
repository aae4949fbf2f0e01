//! Accounts for the workers' time: `k` workers for `T` seconds have `k T` thread-seconds, and each of them is
//! accounted for.
//!
//! User and system time are counted by the kernel. Samples of the program's threads divide the rest. A worker that
//! has not started, has ended, or waits for a child process is absent.

use std::fmt;

use gristmill_counters::sleep::Sleep;

use crate::diagnose::kernel_work::KernelWork;

/// The reasons for which a worker sleeps, in the order of [`Seen::blocked`]: all but the wait for a child process, by
/// which a process is known that is no worker.
pub(crate) const SLEEPS: [Sleep; 13] = [
    Sleep::Lock,
    Sleep::Signal,
    Sleep::Futex,
    Sleep::AddressSpace,
    Sleep::FileLock,
    Sleep::Database,
    Sleep::Semaphore,
    Sleep::Message,
    Sleep::Pipe,
    Sleep::Disk,
    Sleep::Clock,
    Sleep::Events,
    Sleep::Other,
];

/// Returns the place of a sleep among [`SLEEPS`].
pub(crate) fn place(sleep: Sleep) -> usize {
    SLEEPS.iter().position(|other| *other == sleep).expect("a worker does not sleep for a child")
}

/// The threads at one moment, except those that wait for a child process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// The number of threads on a processor or waiting for one.
    pub runnable: u64,
    /// The sleeping threads, one entry each with the reason.
    pub asleep: Vec<Sleep>,
}

/// The samples of a run, summed up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// The seconds that workers slept, for each of [`SLEEPS`].
    blocked: [f64; SLEEPS.len()],
    /// The seconds that workers were absent.
    absent: f64,
    /// The seconds that threads were runnable.
    runnable: f64,
    /// The seconds in which no thread was runnable, those in which one was, and those in which several were.
    nobody: f64,
    alone: f64,
    together: f64,
    /// The seconds that the sampled threads spent on processors.
    pub on_processor: f64,
    /// The seconds that they waited for a processor.
    pub waited: f64,
    /// The share of the time on processors that the busiest thread had. All three are 0 if the kernel does not tell
    /// them.
    pub busiest: f64,
    /// True if no two workers were seen that may have memory in common: all are processes of one thread, and none maps
    /// memory that others may write.
    pub are_apart: bool,
    /// How often samples found the kernel at each of [`KernelWork::ALL`]. All 0 if there are none.
    kernel: [u64; 9],
}

impl Seen {
    /// Adds a sample in which the kernel worked for the program.
    pub fn add_kernel(&mut self, work: KernelWork) {
        self.kernel[work as usize] += 1;
    }

    /// Adds a sample that stands for `seconds` of a program with this many workers.
    pub fn add(&mut self, moment: &Moment, seconds: f64, workers: u64) {
        let free = workers.saturating_sub(moment.runnable);
        let asleep = (moment.asleep.len() as u64).min(free);
        self.runnable += seconds * moment.runnable as f64;
        match moment.runnable {
            0 => self.nobody += seconds,
            1 => self.alone += seconds,
            _ => self.together += seconds,
        }
        self.absent += seconds * (free - asleep) as f64;
        // If more threads sleep than workers are missing, it is unknown which of them are workers.
        let each = asleep as f64 / moment.asleep.len().max(1) as f64;
        for wait in &moment.asleep {
            self.blocked[place(*wait)] += seconds * each;
        }
    }
}

/// The kernel's counts for a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counted {
    /// The number of workers.
    pub workers: u64,
    /// The time from start to end.
    pub seconds: f64,
    /// The processor time outside of the kernel.
    pub user: f64,
    /// The processor time in the kernel.
    pub system: f64,
    /// The number of page faults without disk access.
    pub faults: u64,
    /// The number of times that a thread gave up its processor to wait.
    pub waits: u64,
}

/// The thread-seconds of a run. The parts sum to `workers * seconds`, or to the processor time if that is larger.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    /// The kernel's counts.
    pub counted: Counted,
    /// Runnable, but without a processor.
    pub waiting: f64,
    /// True if the kernel did not count that, so that it was estimated from samples.
    pub is_estimate: bool,
    /// The number of threads that waited for a processor, on average. There may be more of them than workers.
    pub queue: f64,
    /// Asleep, for each of `SLEEPS`.
    pub blocked: [f64; SLEEPS.len()],
    /// The system time, for each of [`KernelWork::ALL`]. All 0 if that is unknown.
    pub kernel: [f64; 9],
    /// Not started, ended, or waiting for a child process.
    pub absent: f64,
    /// The share of the time with runnable threads in which there were several of them.
    pub together: f64,
    /// The share of the processor time that the busiest thread had; 1 if the kernel does not tell that.
    pub busiest: f64,
    /// The share of the time in which no thread was runnable.
    pub idle: f64,
    /// True if workers may have memory in common: threads of one process, or shared mappings.
    pub shares_memory: bool,
}

/// The share of the processor time that samples must have seen to count as having followed threads to their ends.
const SEEN_MIN: f64 = 0.9;

impl Account {
    /// Divides the time into parts.
    pub fn of(counted: Counted, seen: &Seen) -> Account {
        let used = counted.user + counted.system;
        let rest = (counted.workers as f64 * counted.seconds - used).max(0.0);
        // The kernel's count if threads were seen to their ends. If many ended between samples, the excess of
        // runnable time over processor time.
        let seen_share = if used > 0.0 { seen.on_processor / used } else { 0.0 };
        let is_estimate = seen_share < SEEN_MIN;
        let waiting = if is_estimate { (seen.runnable - used).max(0.0) } else { seen.waited / seen_share.min(1.0) };
        let queue = waiting / counted.seconds.max(f64::MIN_POSITIVE);
        let waiting = waiting.min(rest);
        let idle = seen.blocked.iter().sum::<f64>() + seen.absent;
        let share = |seconds: f64| if idle > 0.0 { (rest - waiting) * seconds / idle } else { 0.0 };
        // If the run ended before the first sample, all its remaining time counts as absent.
        let absent = if idle > 0.0 { share(seen.absent) } else { rest - waiting };
        let share_of = |part: f64, all: f64| if all > 0.0 { part / all } else { 1.0 };
        let together = share_of(seen.together, seen.alone + seen.together);
        let sampled = seen.nobody + seen.alone + seen.together;
        let idle = if sampled > 0.0 { seen.nobody / sampled } else { 0.0 };
        let busiest = if seen.busiest > 0.0 { seen.busiest } else { 1.0 };
        let samples: u64 = seen.kernel.iter().sum();
        let kernel = seen.kernel.map(|of| counted.system * of as f64 / samples.max(1) as f64);
        let blocked = seen.blocked.map(share);
        let shares_memory = !seen.are_apart;
        Account {
            counted,
            waiting,
            is_estimate,
            queue,
            blocked,
            kernel,
            absent,
            together,
            busiest,
            idle,
            shares_memory,
        }
    }

    /// The sum of all parts.
    pub fn whole(&self) -> f64 {
        self.parts().iter().map(|(_, seconds)| seconds).sum()
    }

    /// Returns each part with its name, without waits that did not occur.
    pub fn parts(&self) -> Vec<(TimePart, f64)> {
        let mut parts = vec![
            (TimePart::User, self.counted.user),
            (TimePart::System, self.counted.system),
            (TimePart::Waiting, self.waiting),
        ];
        parts.extend(SLEEPS.into_iter().zip(self.blocked).map(|(wait, seconds)| (TimePart::Blocked(wait), seconds)));
        parts.push((TimePart::Absent, self.absent));
        parts.retain(|(part, seconds)| *seconds > 0.0 || !matches!(part, TimePart::Blocked(_)));
        parts
    }

    /// Returns the thread-seconds of sleep.
    pub fn asleep(&self) -> f64 {
        self.blocked.iter().sum()
    }

    /// Returns the system time for each kind of work, the longest first. Empty if that is unknown.
    pub fn kernel_work(&self) -> Vec<(KernelWork, f64)> {
        let all = KernelWork::ALL.into_iter().zip(self.kernel);
        let mut known: Vec<(KernelWork, f64)> = all.filter(|(_, seconds)| *seconds > 0.0).collect();
        known.sort_by(|a, b| b.1.total_cmp(&a.1));
        known
    }

    /// Returns the share of the time in which the busiest thread had a processor; `None` if the kernel does not tell
    /// that.
    pub fn busy_most(&self) -> Option<f64> {
        (self.busiest < 1.0).then(|| self.busiest * self.busy())
    }

    /// Returns the number of processors that the run kept busy, on average.
    pub fn busy(&self) -> f64 {
        (self.counted.user + self.counted.system) / self.counted.seconds.max(f64::MIN_POSITIVE)
    }

    /// Returns the seconds of a part.
    pub fn part(&self, part: TimePart) -> f64 {
        self.parts().into_iter().find(|(other, _)| *other == part).map_or(0.0, |(_, seconds)| seconds)
    }
}

/// A part of the workers' time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimePart {
    /// Time in the program.
    User,
    /// Time in the kernel.
    System,
    /// Runnable, but without a processor.
    Waiting,
    /// Asleep.
    Blocked(Sleep),
    /// Not started, or ended.
    Absent,
}

impl fmt::Display for TimePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TimePart::User => f.write_str("user"),
            TimePart::System => f.write_str("system"),
            TimePart::Waiting => f.write_str("waiting for a processor"),
            TimePart::Blocked(wait) => write!(f, "blocked by {wait}"),
            TimePart::Absent => f.write_str("not started or ended"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn moment(runnable: u64, asleep: &[Sleep]) -> Moment {
        Moment { runnable, asleep: asleep.to_vec() }
    }

    fn counted(workers: u64, seconds: f64, user: f64, system: f64) -> Counted {
        Counted { workers, seconds, user, system, ..Counted::default() }
    }

    #[test]
    fn workers_that_run_at_once_are_together() {
        let mut seen = Seen { on_processor: 4.0, busiest: 0.75, ..Seen::default() };
        for (runnable, seconds) in [(0, 7.0), (1, 3.0), (2, 0.5), (9, 0.5)] {
            seen.add(&moment(runnable, &[]), seconds, 2);
        }
        let account = Account::of(counted(2, 11.0, 4.0, 0.0), &seen);
        assert_eq!((account.together, account.busiest), (0.25, 0.75));
        // Nothing is known of a run without samples.
        let account = Account::of(counted(2, 11.0, 4.0, 0.0), &Seen::default());
        assert_eq!((account.together, account.busiest), (1.0, 1.0));
    }

    #[test]
    fn samples_divide_the_system_time() {
        let mut seen = Seen::default();
        let works = [KernelWork::Files, KernelWork::Futex, KernelWork::Files, KernelWork::Files];
        works.into_iter().for_each(|work| seen.add_kernel(work));
        let account = Account::of(counted(1, 10.0, 2.0, 8.0), &seen);
        assert_eq!(account.kernel_work(), [(KernelWork::Files, 6.0), (KernelWork::Futex, 2.0)]);
        assert_eq!(Account::of(counted(1, 10.0, 2.0, 8.0), &Seen::default()).kernel_work(), []);
    }

    #[test]
    fn runnable_threads_beyond_the_processor_time_were_waiting() {
        let mut seen = Seen { on_processor: 10.0, waited: 30.0, ..Seen::default() };
        seen.add(&moment(4, &[]), 10.0, 4);
        assert!((Account::of(counted(4, 10.0, 9.9, 0.1), &seen).waiting - 30.0).abs() < 1e-9);
        let seen = Seen { on_processor: 0.0, waited: 0.0, ..seen };
        assert!((Account::of(counted(4, 10.0, 9.9, 0.1), &seen).waiting - 30.0).abs() < 1e-9);
    }

    /// With one worker that had eight threads, nobody seemed to wait for a processor.
    #[test]
    fn threads_beyond_the_workers_queue_for_processors() {
        let mut seen = Seen { on_processor: 1.0, waited: 3.0, ..Seen::default() };
        seen.add(&moment(8, &[]), 0.5, 1);
        let account = Account::of(counted(1, 0.5, 1.0, 0.0), &seen);
        assert_eq!((account.waiting, account.queue), (0.0, 6.0));
    }

    #[test]
    fn a_second_of_each_kind_is_found_where_it_belongs() {
        // Two workers, four seconds: both run; one waits for a lock; one is absent; one waits for a disk.
        let mut seen = Seen { on_processor: 5.0, ..Seen::default() };
        seen.add(&moment(2, &[]), 1.0, 2);
        seen.add(&moment(1, &[Sleep::Lock]), 1.0, 2);
        seen.add(&moment(1, &[]), 1.0, 2);
        seen.add(&moment(1, &[Sleep::Disk]), 1.0, 2);
        let account = Account::of(counted(2, 4.0, 4.5, 0.5), &seen);
        for (part, seconds) in [
            (TimePart::Blocked(Sleep::Lock), 1.0),
            (TimePart::Blocked(Sleep::Disk), 1.0),
            (TimePart::Absent, 1.0),
            (TimePart::Waiting, 0.0),
        ] {
            assert!((account.part(part) - seconds).abs() < 1e-9, "{part}: {account:?}");
        }
        assert!((account.whole() - 8.0).abs() < 1e-9);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn parts_sum_to_the_whole(
            workers in 1..200_u64, seconds in 0.001..1e3_f64, busy in 0.0..1.3_f64, system in 0.0..1.0_f64,
            waited in 0.0..5.0_f64, on in 0.0..2.0_f64,
            moments in prop::collection::vec((0..300_u64, prop::collection::vec(0..7_usize, 0..9)), 0..20),
        ) {
            let whole = workers as f64 * seconds;
            let used = whole * busy;
            let mut seen = Seen { on_processor: on * used, waited: waited * used, ..Seen::default() };
            for (runnable, asleep) in &moments {
                let asleep: Vec<Sleep> = asleep.iter().map(|at| SLEEPS[*at]).collect();
                seen.add(&Moment { runnable: *runnable, asleep }, seconds / moments.len() as f64, workers);
            }
            let account = Account::of(counted(workers, seconds, used * (1.0 - system), used * system), &seen);
            let expected = whole.max(used);
            prop_assert!((account.whole() / expected - 1.0).abs() < 1e-9, "{} {expected}", account.whole());
            prop_assert!((0.0..=1.0).contains(&account.together));
            prop_assert!(account.parts().iter().all(|(_, seconds)| *seconds >= 0.0));
        }
    }

    /// A program that waited for its disk, and whose end no sample saw, was once said to wait for a processor.
    #[test]
    fn waits_of_a_few_threads_do_not_count_for_all() {
        let mut seen = Seen { on_processor: 0.0003, waited: 0.006, ..Seen::default() };
        seen.add(&moment(0, &[Sleep::Disk]), 0.1, 1);
        let account = Account::of(counted(1, 0.1, 0.001, 0.004), &seen);
        assert!(account.waiting == 0.0 && account.part(TimePart::Blocked(Sleep::Disk)) > 0.09, "{account:?}");
    }
}
